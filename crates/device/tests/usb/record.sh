#!/bin/sh
# Prints what `trueio usb` reads on this machine, as a tree.txt (see ../machines/README.md).
# Reads only; works in busybox. Run as root for the whole of it. Binary files are written as
# `path := hexadecimal`.
set -u

file() {
    [ -f "$1" ] || return 0
    text=$(cat "$1" 2>/dev/null | tr -d '\000') || return 0
    printf '%s\n' "$text" | while IFS= read -r line; do printf '%s = %s\n' "$1" "$line"; done
}

binary() {
    [ -f "$1" ] || return 0
    bytes=$(hexdump -v -e '1/1 "%02x"' "$1" 2>/dev/null) || return 0
    [ -z "$bytes" ] || printf '%s := %s\n' "$1" "$bytes"
}

link() { [ ! -L "$1" ] || printf '%s -> %s\n' "$1" "$(readlink "$1")"; }

files() { folder=$1; shift; for fact in "$@"; do file "$folder/$fact"; done; }

block() {
    files "$1" dev size ro removable partition stat
    number=$(cat "$1/dev")
    printf '/sys/dev/block/%s -> ../../%s\n' "$number" "${1#/sys/}"
    printf '/sys/class/block/%s -> ../../%s\n' "${1##*/}" "${1#/sys/}"
    for relative in slaves holders; do
        [ -d "$1/$relative" ] || continue
        echo "$1/$relative/"
        for other in "$1/$relative"/*; do link "$other"; done
    done
}

echo "# recorded on $(uname -srm)"
files /proc self/mountinfo swaps cmdline sys/kernel/osrelease sys/kernel/ostype sys/kernel/dmesg_restrict
for module in uas usb_storage; do
    [ ! -d "/sys/module/$module" ] || echo "/sys/module/$module/"
done
file /sys/module/usb_storage/parameters/quirks
file /sys/module/usb_storage/parameters/delay_use
for driver in uas usb-storage; do
    directory=/sys/bus/usb/drivers/$driver
    [ -d "$directory" ] || continue
    echo "$directory/"
    for entry in "$directory"/*:*; do link "$entry"; done
done
for entry in /sys/bus/usb/devices/*; do
    link "$entry"
    real=$(readlink -f "$entry")
    case "${entry##*/}" in
    *:*)
        files "$real" authorized bAlternateSetting bInterfaceClass bInterfaceNumber bInterfaceProtocol \
            bInterfaceSubClass bNumEndpoints modalias
        link "$real/driver"
        for port in "$real"/*-port*; do
            [ -L "$port/device" ] || continue
            link "$port/peer"
            [ ! -L "$port/peer" ] || echo "$(readlink -f "$port/peer")/"
            link "$port/device"
        done
        for host in "$real"/host*; do
            [ -d "$host" ] || continue
            files "$host/scsi_host/${host##*/}" can_queue proc_name sg_tablesize
            for unit in "$host"/target*/*:*:*:*; do
                [ -d "$unit" ] || continue
                files "$unit" vendor model rev type queue_depth max_sectors state timeout iodone_cnt ioerr_cnt iotmo_cnt
                binary "$unit/vpd_pg80"
                for generic in "$unit"/scsi_generic/*; do file "$generic/dev"; done
                for disk in "$unit"/block/*; do
                    [ -d "$disk" ] || continue
                    printf '/sys/block/%s -> ..%s\n' "${disk##*/}" "${disk#/sys}"
                    link "$disk/device"
                    block "$disk"
                    files "$disk/queue" logical_block_size physical_block_size rotational scheduler write_cache fua \
                        nr_requests max_sectors_kb read_ahead_kb iostats discard_max_bytes
                    for part in "$disk/${disk##*/}"*; do [ ! -f "$part/partition" ] || block "$part"; done
                done
            done
        done
        ;;
    *)
        files "$real" idVendor idProduct bcdDevice bConfigurationValue version speed rx_lanes tx_lanes bMaxPower bDeviceClass busnum devnum \
            devpath maxchild manufacturer product serial authorized
        binary "$real/descriptors"
        binary "$real/bos_descriptors"
        link "$real/port"
        link "$real/driver"
        case "${entry##*/}" in
        usb*)
            parent=${real%/*}
            link "$parent/driver"
            files "$parent" vendor device
            ;;
        esac
        ;;
    esac
done
for disk in /sys/block/dm-* /sys/block/md*; do
    [ -L "$disk" ] || continue
    link "$disk"
    block "$(readlink -f "$disk")"
    files "$disk" dm/name dm/uuid md/level
done

#!/bin/sh
# Prints this machine's tree.txt (see README.md): disks, mounts and what else crates/device reads.
# Reads only. Run as root for the serial numbers.
set -eu

file() {
    [ -r "$1" ] && [ -f "$1" ] || return 0
    text=$(cat "$1" 2>/dev/null) || return 0
    printf '%s\n' "$text" | while IFS= read -r line; do printf '%s = %s\n' "$1" "$line"; done
}

link() { printf '%s -> %s\n' "$1" "$(readlink "$1")"; }

echo "# recorded on $(uname -srm)"
for path in /proc/self/mountinfo /proc/swaps /proc/loadavg \
    /proc/sys/kernel/ostype /proc/sys/kernel/osrelease /proc/sys/kernel/arch /sys/hypervisor/type \
    /sys/class/dmi/id/sys_vendor /sys/class/dmi/id/product_name \
    /sys/devices/system/clocksource/clocksource0/current_clocksource \
    /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor; do
    file "$path"
done
# Of the long files only the lines that are read.
grep -hE '^(processor|model name)' /proc/cpuinfo | sed 's|^|/proc/cpuinfo = |'
grep -m 1 -qwE '^flags.*hypervisor' /proc/cpuinfo && echo '/proc/cpuinfo = flags : hypervisor'
grep -E '^Mem(Total|Available)' /proc/meminfo | sed 's|^|/proc/meminfo = |'
grep -E '^cpu ' /proc/stat | sed 's|^|/proc/stat = |'
grep -E '^PRETTY_NAME' /etc/os-release | sed 's|^|/etc/os-release = |'

for disk in /sys/block/*; do
    [ -L "$disk" ] || continue
    [ "$(cat "$disk/size")" != 0 ] || continue
    real=$(readlink -f "$disk")
    link "$disk"
    for directory in "$real" "$real"/*/; do
        directory=${directory%/}
        [ "$directory" = "$real" ] || [ -f "$directory/partition" ] || continue
        for name in dev size stat partition start alignment_offset ro removable serial wwid; do file "$directory/$name"; done
        number=$(cat "$directory/dev")
        printf '/sys/dev/block/%s -> ../../%s\n' "$number" "${directory#/sys/}"
        for relative in slaves holders; do
            [ -d "$directory/$relative" ] || continue
            echo "$directory/$relative/"
            for other in "$directory/$relative"/*; do [ ! -L "$other" ] || link "$other"; done
        done
    done
    for name in logical_block_size physical_block_size rotational scheduler write_cache fua nr_requests \
        max_sectors_kb read_ahead_kb iostats max_hw_sectors_kb max_segments max_segment_size minimum_io_size \
        optimal_io_size dma_alignment discard_granularity discard_max_bytes write_zeroes_max_bytes zoned \
        chunk_sectors io_poll atomic_write_unit_max_bytes; do
        file "$real/queue/$name"
    done
    for queue in "$real"/mq/*/; do [ ! -d "$queue" ] || echo "$queue"; done
    for name in model vendor serial name rev firmware_rev wwid; do file "$real/device/$name"; done
    for name in dm/name dm/uuid dm/suspended md/level md/raid_disks md/degraded md/array_state md/sync_action \
        md/chunk_size loop/backing_file loop/dio loop/offset loop/sizelimit loop/autoclear bcache/state \
        bcache/cache_mode bcache/backing_dev_name bcache/dirty_data; do file "$real/$name"; done
done
for filesystem in /sys/fs/btrfs/*-*; do
    [ -d "$filesystem/devices" ] || continue
    for device in "$filesystem/devices"/*; do link "$device"; done
done
for path in /dev/disk/by-uuid/*; do [ ! -L "$path" ] || link "$path"; done

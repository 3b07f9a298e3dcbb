"""Prints the facts that a disk reports and how it can be opened. Writes nothing.

    python block_device_report.py DEVICE…

The equal of `get-block-device` of the npm package @ronomon/direct-io, whose four lines come first.
"""

import sys

from trueio import direct


def report(device: str) -> list[str]:
    """The report on one disk as lines."""
    probe = direct.probe(device)
    with direct.open(device, policy="prefer") as file:
        facts = direct.device_facts(file)
    rows: dict[str, object] = {
        "Logical Sector Size": facts.logical_sector_bytes,
        "Physical Sector Size": facts.physical_sector_bytes,
        "Size": facts.size_bytes,
        "Serial Number": facts.serial,
        "Serial Number From": facts.serial_source,
        "Minimum I/O": facts.minimum_io_bytes,
        "Optimal I/O": facts.optimal_io_bytes,
        "Rotational": facts.is_rotational,
        "Direct I/O": f"{probe.support} ({probe.reason})",
        "Memory Alignment": probe.alignment.memory_bytes,
        "Offset Alignment": probe.alignment.write_offset_bytes,
    }
    width = max(map(len, rows)) + 2
    return [f"{name:>{width}}: {'unknown' if value is None else value}" for name, value in rows.items()]


def main(devices: list[str]) -> int:
    """Prints a report on each disk."""
    if not devices:
        print("usage: block_device_report.py DEVICE…", file=sys.stderr)
        return 2
    try:
        for device in devices:
            print("", device, *report(device), "", sep="\n")
    except OSError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

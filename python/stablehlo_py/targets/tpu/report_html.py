"""The report as one HTML file: pictures as SVG in the text, nothing loaded from anywhere, no script."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from stablehlo_py.targets.tpu.report import KernelReport, Report

WIDTH = 1040
COLOURS = {
    "MXU": "#2f6fb3",
    "VPU": "#3a9a5b",
    "XLU": "#8f6fc0",
    "EUP": "#b3a12f",
    "DMA in": "#d98324",
    "DMA out": "#c14b4b",
    "local in": "#7a8a99",
    "local out": "#9a7b6a",
    "prefetch": "#e0b13a",
}
BUFFERS = ("#2f6fb3", "#3a9a5b", "#d98324", "#c14b4b", "#8f6fc0", "#7a8a99", "#b3a12f", "#4fa3a3")
STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #1c2430; max-width: 1080px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin: 2em 0 .4em; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25em .6em; text-align: right; border-bottom: 1px solid #d8dee6; white-space: nowrap; } th { font-weight: 600; }
td:first-child, th:first-child, td.text { text-align: left; }
p.note { color: #5a6573; } svg { display: block; } svg text { font: 12px system-ui, sans-serif; fill: #1c2430; }
.key { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 1em; border-radius: 2px; }
.bar { display: inline-block; height: .7em; background: #2f6fb3; }
"""


def html(report: Report, title: str = "A program on a TPU-like chip") -> str:
    """The whole page."""
    sections = [
        _summary(report),
        _section("Timeline", _timeline(report), "Kernels one after the other; each row is a unit of one core."),
        _section("Kernels", _kernels(report), "Utilisation is of the peak of the matrix units."),
        _section(
            "Roofline",
            _roofline(report),
            "Kernels with a product that move something over the HBM; what was brought before them counts.",
        ),
        _section("VMEM", _vmem(report), "Buffers of each kernel, both copies of a double buffer, while it runs."),
        _section(
            "Between kernels",
            _arrays(report),
            "Arrays in fast memory: brought there for a kernel (light), or left there by one (dark).",
        ),
        _section("Padding", _padding(report), "Multiplications with padding, and bytes of arrays in whole tiles."),
        _section("What if: other chips", _what_if(report), "") if report.what_if else "",
        _section("On the host", _host(report), "What has no mapping to the chip. Its time is not in any figure here."),
    ]
    body = "\n".join(section for section in sections if section)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head>\n<body><h1>{escape(title)}</h1>\n{body}\n</body></html>\n"
    )


def _section(title: str, content: str, note: str) -> str:
    remark = f'<p class="note">{escape(note)}</p>' if note else ""
    return f"<section><h2>{escape(title)}</h2>{remark}{content}</section>"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are HTML already."""
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _svg(height: float, parts: Iterable[str], label: str) -> str:
    return (
        f'<svg role="img" aria-label="{escape(label)}" viewBox="0 0 {WIDTH} {height:.0f}" width="100%">'
        f"{''.join(parts)}</svg>"
    )


def _rect(x: float, y: float, width: float, height: float, colour: str, title: str) -> str:
    return (
        f'<rect x="{x:.2f}" y="{y:.2f}" width="{max(width, 0.4):.2f}" height="{height:.2f}" fill="{colour}">'
        f"<title>{escape(title)}</title></rect>"
    )


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str = "#d8dee6") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _key(rows: Iterable[tuple[str, str]]) -> str:
    keys = (f'<span class="key" style="background:{colour}"></span>{escape(name)}' for name, colour in rows)
    return f"<p>{''.join(keys)}</p>"


def _summary(report: Report) -> str:
    kernels = len(report.kernels)
    return (
        f"<p><b>{escape(report.chip)}</b>: {kernels} kernels, <b>{report.seconds * 1e6:,.1f} us</b>"
        f" ({report.cycles:,.0f} cycles), <b>{100 * report.utilisation:.1f}%</b> of the matrix units' peak of"
        f" {report.peak_flops / 1e12:,.0f} Tflop/s. Operands brought to fast memory behind kernels"
        f" take {report.prefetch_seconds * 1e6:,.1f} us of the HBM; {report.exposed_seconds * 1e6:,.1f} us of that are not"
        f" hidden.{_crossing(report)}</p>"
        '<p class="note">This is a model: nothing here ran on a TPU. Specified numbers, assumed ones and constants fitted to'
        " measurements are told apart in machine/tpu.py.</p>"
    )


def _crossing(report: Report) -> str:
    if not any(k.split for k in report.kernels):
        return ""
    return (
        f" One core makes {report.crossing_bytes / 1e6:,.2f} MB that the other reads; sending that from VMEM to VMEM takes"
        f" {report.exchange_seconds * 1e6:,.1f} us."
    )


LEFT = 80.0


def _timeline(report: Report) -> str:
    total = max(report.seconds, 1e-12)
    across = (WIDTH - LEFT - 10) / total
    units = [unit for unit in COLOURS if any(span.unit == unit for k in report.kernels for span in k.spans)]
    row, top = 26.0, 22.0
    parts = [_text(LEFT - 8, top + row * i + 17, unit, "end") for i, unit in enumerate(units)]
    for kernel in report.kernels:
        scale = kernel.seconds / kernel.cycles
        x = LEFT + kernel.start_seconds * across
        parts.append(_line(x, top - 6, x, top + row * len(units)))
        if kernel.seconds * across > 60:
            parts.append(_text(x + 3, top - 8, kernel.label))
        for span in kernel.spans:
            start = x + (kernel.launch_cycles / 2 + span.start) * scale * across
            title = f"{kernel.label}: {span.label}, {span.end - span.start:,.0f} cycles from {span.start:,.0f}"
            width = (span.end - span.start) * scale * across
            parts.append(
                _rect(start, top + row * units.index(span.unit) + 3, width, row - 6, COLOURS[span.unit], title)
            )
    bottom = top + row * len(units)
    for tick in range(6):
        x, anchor = LEFT + tick * total / 5 * across, "end" if tick == 5 else "middle"
        parts += [
            _line(x, bottom, x, bottom + 5, "#5a6573"),
            _text(x, bottom + 18, f"{tick * total / 5e-6:.1f} us", anchor),
        ]
    cut = [kernel.label for kernel in report.kernels if not kernel.whole_timeline]
    remark = f'<p class="note">Only the beginning is drawn of {escape(", ".join(cut))}.</p>' if cut else ""
    return _svg(bottom + 26, parts, "timeline") + _key((unit, COLOURS[unit]) for unit in units) + remark


def _kernels(report: Report) -> str:
    def bar(kernel: KernelReport) -> str:
        return (
            f'<span class="bar" style="width:{100 * kernel.utilisation:.0f}px"></span> {100 * kernel.utilisation:.1f}%'
        )

    cores = any(k.split for k in report.kernels)
    head = ["kernel", "b x m x n x k", "type", "us", "waits us", "share", "utilisation", "HBM MB", "flop/byte"]
    head += [*(("split", "crossing MB") if cores else ()), "bound by"]
    rows = [
        (
            escape(k.label),
            " x ".join(map(str, k.shape)),
            k.element,
            f"{k.seconds * 1e6:.2f}",
            f"{(k.stall_seconds + k.slowed_seconds) * 1e6:.2f}",
            f"{100 * k.seconds / report.seconds:.1f}%",
            bar(k),
            f"{k.hbm_bytes / 1e6:.2f}",
            f"{k.intensity:.0f}" if k.macs and k.intensity < math.inf else "-",
            *((escape(k.split), f"{k.crossing_bytes / 1e6:.2f}") if cores else ()),
            escape(k.bound),
        )
        for k in report.kernels
    ]
    return _table(head, rows)


def _roofline(report: Report) -> str:
    kernels = [kernel for kernel in report.kernels if kernel.macs and kernel.intensity < math.inf]
    if not kernels:
        return "<p>No kernel with a product takes or gives anything over the HBM.</p>"
    height, bottom, top = 320.0, 280.0, 20.0
    ridge = report.peak_flops / report.hbm_bytes_per_second
    low = min([k.intensity for k in kernels] + [ridge]) / 4
    high = max([k.intensity for k in kernels] + [ridge]) * 4
    floor = report.peak_flops / 1e4

    def x_of(intensity: float) -> float:
        return LEFT + (WIDTH - LEFT - 30) * math.log(intensity / low) / math.log(high / low)

    def y_of(flops: float) -> float:
        return bottom - (bottom - top - 10) * math.log(max(flops, floor) / floor) / math.log(1e4)

    start = max(low, floor / report.hbm_bytes_per_second)
    parts = [
        _line(x_of(start), y_of(start * report.hbm_bytes_per_second), x_of(ridge), y_of(report.peak_flops), "#1c2430"),
        _line(x_of(ridge), y_of(report.peak_flops), x_of(high), y_of(report.peak_flops), "#1c2430"),
        _text(x_of(high), y_of(report.peak_flops) - 6, f"{report.peak_flops / 1e12:,.0f} Tflop/s", "end"),
        _text(x_of(start), bottom + 34, f"operations per byte of HBM; the ridge is at {ridge:.0f}"),
        _line(LEFT, bottom, WIDTH - 30, bottom, "#5a6573"),
    ]
    for power in range(5):
        flops = floor * 10**power
        parts += [
            _line(LEFT, y_of(flops), WIDTH - 30, y_of(flops)),
            _text(LEFT - 6, y_of(flops) + 4, f"{float(f'{flops / 1e12:.2g}'):g} T", "end"),
        ]
    decade = math.ceil(math.log10(low))
    while 10**decade <= high:
        parts.append(_text(x_of(10.0**decade), bottom + 16, f"{10.0**decade:g}", "middle"))
        decade += 1
    for kernel in kernels:
        flops = 2 * kernel.macs / kernel.seconds
        title = f"{kernel.label}: {flops / 1e12:.2f} Tflop/s at {kernel.intensity:.0f} flop/byte"
        x, y = x_of(kernel.intensity), y_of(flops)
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="#2f6fb3" fill-opacity=".7"><title>{escape(title)}</title></circle>'
        )
    return _svg(height, parts, "roofline")


def _vmem(report: Report) -> str:
    if not report.kernels:
        return ""
    most = max(max(k.vmem_peak for k in report.kernels), 1)
    across, top, height = (WIDTH - LEFT - 10) / report.seconds, 14.0, 220.0
    names = list(dict.fromkeys(b.name for k in report.kernels for b in k.buffers))
    colour = {name: BUFFERS[i % len(BUFFERS)] for i, name in enumerate(names)}
    parts = [_text(LEFT - 8, top + 8, f"{most / 1024:,.0f} KiB", "end"), _text(LEFT - 8, top + height, "0", "end")]
    for kernel in report.kernels:
        x, width = LEFT + kernel.start_seconds * across, (kernel.end_seconds - kernel.start_seconds) * across
        for b in kernel.buffers:
            for copy in range(b.copies):
                y = top + height * (1 - (b.offset + (copy + 1) * b.bytes) / most)
                shape = "x".join(map(str, b.shape))
                title = (
                    f"{kernel.label}: {b.name} {shape} {b.element}, {b.bytes:,} bytes, copy {copy + 1} of {b.copies}"
                )
                parts.append(
                    _rect(x + 0.5, y + 0.5, width - 1, max(height * b.bytes / most - 1, 0.4), colour[b.name], title)
                )
    parts.append(_line(LEFT, top + height, WIDTH - 10, top + height, "#5a6573"))
    resident = max((k.resident_bytes for k in report.kernels), default=0)
    remark = f"The limit of one kernel is {report.vmem_limit / 1024:,.0f} KiB."
    if resident:
        remark += f" Arrays that are in VMEM between kernels take up to {resident / 1024:,.0f} KiB more."
    return _svg(top + height + 12, parts, "VMEM") + _key(colour.items()) + f'<p class="note">{remark}</p>'


def _arrays(report: Report) -> str:
    """Offsets against time: a row of the picture is a place in fast memory."""
    arrays = [array for kernel in report.kernels for array in kernel.arrays]
    if not arrays:
        return "<p>None.</p>"
    base, end = min(a.offset for a in arrays), max(a.offset + a.bytes for a in arrays)
    across, top, height = (WIDTH - LEFT - 10) / report.seconds, 14.0, 160.0
    parts = [
        _text(LEFT - 8, top + 8, f"{end / 2**20:,.1f} MiB", "end"),
        _text(LEFT - 8, top + height, f"{base / 2**20:,.1f}", "end"),
    ]
    for kernel in report.kernels:
        x, width = LEFT + kernel.start_seconds * across, (kernel.end_seconds - kernel.start_seconds) * across
        for a in kernel.arrays:
            y, size = top + height * (1 - (a.offset + a.bytes - base) / (end - base)), height * a.bytes / (end - base)
            title = f"{a.name}: {a.bytes:,} bytes at {a.offset:,} of {a.space}, while {kernel.label} runs"
            parts.append(_rect(x, y + 0.3, width, max(size - 0.6, 0.4), "#e0b13a" if a.brought else "#2f6fb3", title))
    parts.append(_line(LEFT, top + height, WIDTH - 10, top + height, "#5a6573"))
    return _svg(top + height + 12, parts, "fast memory between kernels")


def _padding(report: Report) -> str:
    head = ("kernel", "multiplications", "with padding", "waste", "array bytes", "in tiles", "waste")
    rows = [
        (
            escape(k.label),
            f"{k.macs:,}",
            f"{k.padded_macs:,}",
            f"{100 * k.padding_waste:.1f}%",
            f"{k.array_bytes:,}",
            f"{k.padded_bytes:,}",
            f"{100 * (1 - k.array_bytes / k.padded_bytes):.1f}%",
        )
        for k in report.kernels
    ]
    return _table(head, rows)


def _what_if(report: Report) -> str:
    rows = [
        (escape(w.chip), f"{w.seconds * 1e6:,.1f}", f"{report.seconds / w.seconds:.2f}x", f"{100 * w.utilisation:.1f}%")
        for w in report.what_if
    ]
    return _table(("chip", "us", "speed", "utilisation"), rows)


def _host(report: Report) -> str:
    rows = [(escape(name), str(count)) for name, count in sorted(report.host.items())]
    notes = "".join(f"<li>{escape(note)}</li>" for note in report.notes)
    return (_table(("op", "times"), rows) if rows else "<p>Nothing.</p>") + (f"<ul>{notes}</ul>" if notes else "")

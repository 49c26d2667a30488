"""The report: its numbers against what they are made of, its page in a browser, its trace."""

from __future__ import annotations

import html.parser
import itertools
import json
import re
import shutil
import subprocess

import pytest

from stablehlo_py.machine.tpu import CHIPS, chip
from stablehlo_py.targets.tpu.report_html import html as page

from .kernels import compile_text

TWO_PRODUCTS = """
func.func @main(%x: tensor<256x512xbf16>, %w: tensor<512x700xbf16>, %v: tensor<700x64xbf16>, %d: tensor<3x3xf64>)
    -> (tensor<256x64xbf16>, tensor<3x3xf64>) {
  %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<256x512xbf16>, tensor<512x700xbf16>) -> tensor<256x700xbf16>
  %t = stablehlo.tanh %h : tensor<256x700xbf16>
  %r = stablehlo.dot_general %t, %v, contracting_dims = [1] x [0]
    : (tensor<256x700xbf16>, tensor<700x64xbf16>) -> tensor<256x64xbf16>
  %e = stablehlo.dot_general %d, %d, contracting_dims = [1] x [0] : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  return %r, %e : tensor<256x64xbf16>, tensor<3x3xf64>
}
"""


@pytest.fixture(scope="module")
def report():
    return compile_text(TWO_PRODUCTS, chip="v4").report(what_if=True)


def test_numbers_fit_together(report):
    first, second = report.kernels
    assert first.shape == (1, 256, 700, 512)
    # 64 columns would take 128 lanes, so the rows of the last result lie along them.
    assert second.shape == (1, 64, 256, 700)
    machine = chip("v4")
    for kernel in report.kernels:
        assert kernel.seconds == pytest.approx(kernel.cycles / machine.clock_hz)
        assert kernel.utilisation == pytest.approx(2 * kernel.macs / kernel.seconds / machine.peak_flops)
        assert kernel.padded_macs >= kernel.macs
        assert kernel.vmem_peak == max(b.offset + b.copies * b.bytes for b in kernel.buffers) <= report.vmem_limit
        assert max(span.end for span in kernel.spans) <= kernel.cycles
    assert first.padded_macs == 256 * 768 * 512
    assert first.array_bytes == 2 * (256 * 512 + 512 * 700 + 256 * 700)
    # The weights lie turned: 700 rows are padded to 704, 700 columns would be to 768.
    assert first.padded_bytes == 2 * (256 * 512 + 704 * 512 + 256 * 768)
    assert report.seconds == pytest.approx(first.seconds + second.seconds + report.exposed_seconds)


def test_what_stays_on_the_host_is_said(report):
    assert report.host["stablehlo.dot_general"] == 1
    assert "stablehlo.tanh" not in report.host
    (note,) = report.notes
    assert "no products of f64 and f64" in note


def test_other_chips(report):
    assert [w.chip for w in report.what_if] == list(CHIPS)
    assert next(w for w in report.what_if if w.chip == "v4").seconds == pytest.approx(report.seconds)


def test_json_and_text(report):
    data = json.loads(json.dumps(report.as_json()))
    assert data["cycles"] == pytest.approx(report.cycles)
    assert data["kernels"][0]["padding_waste"] == pytest.approx(1 - 700 / 768)
    assert "nothing here ran on one" in data["model"]
    text = report.as_text()
    assert "matmul.0" in text
    assert "1x256x700x512" in text
    assert "on v6e:" in text


def test_trace(report):
    events = report.chrome_trace()["traceEvents"]
    spans = [e for e in events if e["ph"] == "X"]
    assert len(spans) == sum(len(k.spans) for k in report.kernels)
    assert {e["args"]["name"] for e in events if e["ph"] == "M"} >= {"MXU", "DMA in", "DMA out"}
    for unit in {e["tid"] for e in spans}:
        own = sorted((e["ts"], e["ts"] + e["dur"]) for e in spans if e["tid"] == unit)
        assert all(end <= start + 1e-6 for (_, end), (start, _) in itertools.pairwise(own))
    assert max(e["ts"] + e["dur"] for e in spans) <= report.seconds * 1e6


class _Balance(html.parser.HTMLParser):
    """Tags that are open, and what the page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag, attributes):
        self.loads += [value for name, value in attributes if name in ("src", "href")]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.loads += [value for name, value in attributes if name in ("src", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_loads_nothing(report):
    text = page(report, "A <title> & more")
    balance = _Balance()
    balance.feed(text)
    assert balance.open == []
    assert balance.loads == []
    assert "<script" not in text
    assert "url(" not in text
    assert "A &lt;title&gt; &amp; more" in text
    for title in ("Timeline", "Kernels", "Roofline", "VMEM", "Padding", "What if: other chips", "On the host"):
        assert f"<h2>{title}</h2>" in text


def test_a_program_without_kernels_has_a_page_too():
    program = compile_text("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }")
    text = page(program.report())
    assert "0 kernels" in text


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_the_page_in_a_browser(report, tmp_path):
    """Every bar and dot is drawn inside its picture, as the browser lays it out."""
    probe = """<script>
    const bad = [], seen = {rect: 0, circle: 0, text: 0};
    for (const svg of document.querySelectorAll("svg")) {
      const box = svg.getBoundingClientRect();
      for (const part of svg.querySelectorAll("rect, circle, text")) {
        const r = part.getBoundingClientRect();
        seen[part.tagName] += 1;
        if (r.width <= 0 || r.left < box.left - 2 || r.right > box.right + 2 || r.top < box.top - 2 || r.bottom > box.bottom + 2)
          bad.push(part.tagName + " " + part.textContent);
      }
    }
    document.title = JSON.stringify({bad, seen});
    </script></body>"""
    file = tmp_path / "report.html"
    file.write_text(page(report).replace("</body>", probe), encoding="utf-8")
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    run = subprocess.run(
        [*command, "--dump-dom", file.as_uri()], capture_output=True, text=True, timeout=60, check=True
    )
    found = re.search(r"<title>(.*?)</title>", run.stdout, re.S)
    assert found is not None
    drawn = json.loads(html.unescape(found[1]))
    assert drawn["bad"] == []
    assert drawn["seen"]["rect"] >= sum(len(k.spans) + len(k.buffers) for k in report.kernels)
    assert drawn["seen"]["circle"] == 2

"""`stablehlo-opt`: read a program, run passes over it, print it."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from stablehlo_py.cli.exit_codes import BAD_INPUT, BAD_USAGE, FINE
from stablehlo_py.cli.opt_flags import PROGRAM, long_flags, make_parser
from stablehlo_py.cli.parts import SPLIT, split_input
from stablehlo_py.records import field, record

# The bindings take most of a second to import, so help and wrong usage do without them.
if TYPE_CHECKING:
    from stablehlo_py.core.diagnostics import Diagnostic
    from stablehlo_py.core.instrument import Instrument, Timing
    from stablehlo_py.core.pipeline import Pipeline
    from stablehlo_py.errors import CompileError
    from stablehlo_py.mlir import ir

_PASS_FLAG = re.compile(r"--([a-z][\w-]*)(?:=(.*))?", re.S)
_BYTECODE = b"ML\xefR"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; its exit code."""
    try:
        code = _main(long_flags(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Whoever reads has read enough. Python flushes once more at exit, which must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FINE
    except KeyboardInterrupt:
        return 130


def _main(argv: list[str]) -> int:
    parser = make_parser()
    options, others = parser.parse_known_args(argv)
    flags = [_PASS_FLAG.fullmatch(other) for other in others]
    for other, flag in zip(others, flags, strict=True):
        if flag is None:
            parser.error(f"unexpected argument {other!r}; one file is read")
    if bool(others) + (options.pass_pipeline is not None) + (options.pipeline is not None) > 1:
        parser.error("give passes in one way: --pass-pipeline, --pipeline, or one flag a pass")
    if options.stop_after and options.pipeline is None:
        parser.error("--stop-after goes with --pipeline")

    from stablehlo_py.cli import listing
    from stablehlo_py.core.pipeline import BadPipeline

    for plugin in options.load_pass_plugin:
        _load_plugin(plugin)
    try:
        if options.list_passes is not None:
            sys.stdout.write(listing.passes(options.list_passes))
            return FINE
        if options.list_pipelines:
            sys.stdout.write(listing.pipelines())
            return FINE
        flat = [(flag[1], flag[2] or "") for flag in flags if flag]
        plan = _pipeline(options, flat)
        _check_names(options, plan)
        return _Run(options, plan).all_parts()
    except BadPipeline as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return BAD_USAGE


def _load_plugin(file: str) -> None:
    """Import a Python file for the passes that it registers."""
    import importlib.util

    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    if spec is None or spec.loader is None or not Path(file).is_file():
        _bad_usage(f"--load-pass-plugin={file}: there is no such Python file")
    try:
        sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)  # dataclasses look their module up
        spec.loader.exec_module(module)
    except Exception as error:  # whatever a user's file does wrong
        _bad_usage(f"--load-pass-plugin={file}: {type(error).__name__}: {error}")


def _pipeline(options: argparse.Namespace, flags: list[tuple[str, str]]) -> Pipeline:
    from stablehlo_py.core import pipeline

    if options.pipeline is not None:
        return pipeline.load(options.pipeline).until(options.stop_after)
    if options.pass_pipeline is not None:
        return pipeline.Pipeline.of(pipeline.parse(options.pass_pipeline, place="--pass-pipeline"))
    return pipeline.Pipeline.of([pipeline.nested(pipeline.Step(name, text)) for name, text in flags])


def _check_names(options: argparse.Namespace, plan: Pipeline) -> None:
    """Refuse printing flags that name a pass which does not run."""
    from stablehlo_py.core.options import did_you_mean

    names = {step.name for step in plan.steps}
    for flag in ("mlir_print_ir_before", "mlir_print_ir_after"):
        for name in sorted(_chosen(False, getattr(options, flag)) or ()):
            if name not in names:
                hint = did_you_mean(name, names) or "--mlir-print-ir-after-all shows what runs"
                _bad_usage(f"--{flag.replace('_', '-')}={name}: no such pass runs\n  hint: {hint}")


@record(frozen=False)
class _Part:
    """A piece of the input that is one program; its text has the line numbers of the whole."""

    data: bytes
    text: str | None = None  # None for bytecode
    path: Path | None = None  # where it is all of that file


class _Run:
    """One run of the tool over all parts of its input."""

    def __init__(self, options: argparse.Namespace, pipeline: Pipeline) -> None:
        self.options, self.pipeline = options, pipeline
        self.name = "<stdin>" if options.file == "-" else options.file
        self.sources: dict[str, list[str]] = {}
        self.failed = False

    def all_parts(self) -> int:
        from stablehlo_py.errors import CompileError

        results: list[bytes] = []
        try:
            parts = list(self._parts())
        except CompileError as error:
            self._report(error)
            return BAD_INPUT
        for part in parts:
            result = self._one(part)
            if result is not None:
                results.append(result)
        if results:
            self._write((b"" if self.options.emit_bytecode else b"// -----\n").join(results))
        return BAD_INPUT if self.failed else FINE

    def _parts(self) -> Iterator[_Part]:
        from stablehlo_py.errors import BadInput
        from stablehlo_py.reading import diagnose

        path = None if self.options.file == "-" else Path(self.options.file)
        if path is not None and not path.is_file() and not path.is_fifo() and not path.is_char_device():
            raise diagnose.missing_file(path)
        try:
            data = sys.stdin.buffer.read() if path is None else path.read_bytes()
        except OSError as error:
            raise BadInput(f"the file cannot be read: {error.strerror}", where=self.name) from None
        if data.startswith(_BYTECODE):
            yield _Part(data)
            return
        text = data.decode("utf-8", "replace")
        if not self.options.split_input_file or not SPLIT.search(text):
            self.sources["-"] = text.split("\n")
            yield _Part(data, text, path)
            return
        for whole in split_input(text):
            self.sources["-"] = whole.split("\n")
            yield _Part(whole.encode(), whole)

    def _one(self, part: _Part) -> bytes | None:
        """Run the passes over one part; its output, or None after an error."""
        from stablehlo_py.core import pipeline
        from stablehlo_py.core.diagnostics import collect, is_error
        from stablehlo_py.errors import CompileError
        from stablehlo_py.mlir import new_context

        if part.text is not None:
            self.sources["-"] = part.text.split("\n")
        watch = _Watch.of(self.options, self.show)
        context = new_context()
        context.allow_unregistered_dialects = self.options.allow_unregistered_dialect
        error: CompileError | None = None
        result: bytes | None = None
        # Errors come as exceptions; the rest in the order that it is said.
        with collect(context, lambda diagnostic: not is_error(diagnostic), errors=False) as said:
            try:
                module = self._read(part, context)
                pipeline.run(self.pipeline, module.operation, instrument=watch.instrument)
                result = self._output(module.operation)
            except pipeline.BadPipeline:
                raise
            except CompileError as caught:
                error = caught
            except Exception as caught:  # a mistake of ours; the user sees a sentence
                self._internal_error(caught, watch.current)
        if watch.timing is not None:
            sys.stderr.write(watch.timing.table())
        if self.options.verify_diagnostics:
            self._verify(part, said, error)
            return result
        self._show_all(said)
        if error is not None:
            self._report(error)
        return result

    def _read(self, part: _Part, context: ir.Context) -> ir.Module:
        from stablehlo_py import reading
        from stablehlo_py.mlir import ir
        from stablehlo_py.reading import diagnose, guard
        from stablehlo_py.reading.places import Source

        if b"mxu." in part.data:
            from stablehlo_py.dialects import mxu

            mxu.load(context)  # Python has to define it before the parser can meet it
        if not self.options.allow_unregistered_dialect or part.text is None:
            return reading.read_bytes(part.data, self.name, context, part.path)
        # The reader refuses what no pass knows; here the user asked for it.
        diagnose.refuse_other_formats(part.data, self.name)
        guard.refuse_deep_nesting(part.data, self.name)
        try:
            return ir.Module.parse(part.text, context)
        except ir.MLIRError as error:
            raise diagnose.parse_error(error, Source(self.name, part.text)) from None

    def show(self, op: ir.Operation) -> str:
        """A module as text, as the printing flags ask."""
        options = self.options
        return op.get_asm(
            large_elements_limit=options.mlir_elide_elementsattrs_if_larger,
            large_resource_limit=options.mlir_elide_elementsattrs_if_larger,
            enable_debug_info=options.mlir_print_debuginfo,
            pretty_debug_info=False,
            print_generic_op_form=options.mlir_print_op_generic,
            use_local_scope=options.mlir_print_local_scope,
        )

    def _output(self, op: ir.Operation) -> bytes:
        if self.options.emit_bytecode:
            import io

            buffer = io.BytesIO()
            op.write_bytecode(buffer)
            return buffer.getvalue()
        return self.show(op).rstrip("\n").encode() + b"\n"

    def _write(self, data: bytes) -> None:
        if self.options.output in (None, "-"):
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
            return
        try:
            Path(self.options.output).write_bytes(data)
        except OSError as error:
            self._fail(f"{self.options.output}: error: the file cannot be written: {error.strerror}")

    def _verify(self, part: _Part, said: list[Diagnostic], error: CompileError | None) -> None:
        from stablehlo_py.cli.expected import compare

        everything = [*said, *(_diagnostics(error) if error else ())]
        for problem in compare(part.text or "", everything, frozenset({"-", self.name})):
            line, _, message = problem.partition(": ")
            self._fail(f"{self.name}:{line}: error: {message}")

    def _show_all(self, said: list[Diagnostic]) -> None:
        from stablehlo_py.core.diagnostics import render

        for diagnostic in said:
            print(render(diagnostic, self.sources, name=self.name), file=sys.stderr)

    def _report(self, error: CompileError) -> None:
        from stablehlo_py.core.diagnostics import render

        lines = [render(each, self.sources, name=self.name) for each in _diagnostics(error)]
        lines += [f"  {what}" for what in error.trail]
        if error.hint:
            lines.append(f"  hint: {error.hint}")
        self._fail("\n".join(lines))

    def _internal_error(self, error: Exception, current: str) -> None:
        import traceback

        if self.options.traceback:
            traceback.print_exception(error)
        frame = traceback.extract_tb(error.__traceback__)[-1]
        during = f" in {current}" if current else ""
        said = str(error).strip().partition("\n")[0]
        self._fail(
            f"{self.name}: error: internal error{during}: {type(error).__name__}: {said}\n"
            f"  at {frame.filename}:{frame.lineno}\n"
            f"  hint: this is a mistake of {PROGRAM}, not of the program; --traceback shows more for a report"
        )

    def _fail(self, text: str) -> None:
        self.failed = True
        sys.stdout.flush()
        print(text, file=sys.stderr)


def _diagnostics(error: CompileError) -> tuple[Diagnostic, ...]:
    """What an error says, one by one."""
    from stablehlo_py.core.diagnostics import Diagnostic, PassFailure

    if isinstance(error, PassFailure) and error.diagnostics:
        return error.diagnostics
    return (Diagnostic("error", error.message, error.where),)


@record(frozen=False)
class _Watch:
    """The instruments that the flags ask for."""

    instrument: Instrument
    timing: Timing | None
    names: list[str] = field(default_factory=list)

    @property
    def current(self) -> str:
        """The pass that runs."""
        return self.names[-1] if self.names else ""

    @staticmethod
    def of(options: argparse.Namespace, show: Callable[[ir.Operation], str]) -> _Watch:
        from stablehlo_py.core import instrument

        names: list[str] = []

        class Remember(instrument.Instrument):
            """Keep the name of the running pass, for internal errors."""

            def before_pass(self, name: str, stage: str, module: ir.Operation) -> None:
                names.append(f"pass {name}")

        parts: list[instrument.Instrument] = [Remember()]
        before = _chosen(options.mlir_print_ir_before_all, options.mlir_print_ir_before)
        after = _chosen(options.mlir_print_ir_after_all, options.mlir_print_ir_after)
        if before != frozenset() or after != frozenset():
            parts.append(instrument.PrintIR(before=before, after=after, show=show))
        if options.dump_stages:
            try:
                parts.append(instrument.DumpStages(Path(options.dump_stages), show=show))
            except OSError as error:
                _bad_usage(f"--dump-stages={options.dump_stages}: {error.strerror}")
        timing = instrument.Timing() if options.mlir_timing else None
        if timing is not None:
            parts.append(timing)
        return _Watch(instrument.Instruments(parts), timing, names)


def _chosen(everything: bool, lists: list[str]) -> frozenset[str] | None:
    """The passes that a pair of printing flags names; None for all."""
    return None if everything else frozenset(name.strip() for names in lists for name in names.split(","))


def _bad_usage(message: str) -> NoReturn:
    print(f"{PROGRAM}: error: {message}", file=sys.stderr)
    raise SystemExit(BAD_USAGE)


if __name__ == "__main__":
    raise SystemExit(main())

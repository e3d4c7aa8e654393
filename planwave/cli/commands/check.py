"""``planwave check``: every fault of a plan or graph file, nothing stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import typer

from planwave.cli.context import CommandContext
from planwave.cli.errors import ExitCode, show_diagnostics
from planwave.cli.formatting import counted
from planwave.cli.inputs import read_source
from planwave.cli.options import FileArgument, shared_options
from planwave.errors import GraphInvalid
from planwave.graph.diagnostics import Diagnostic
from planwave.service.flows.flow_references import names_flows, unknown_flows
from planwave.service.plans.documents import check_source, is_provider_error

if TYPE_CHECKING:
    from planwave.settings import Settings


class _Checked(NamedTuple):
    diagnostics: Sequence[Diagnostic]
    graph: Mapping[str, Any] | None


@shared_options(over_http=True)
def check(ctx: CommandContext, file: FileArgument) -> None:
    """Report every error of a plan or graph, without running or storing it.

    The stored document of an execution is read as its graph.

    Exit code 0: it can run. 3: it has errors, each listed with its location and a hint. 4: it has
    no errors, but names a provider that is not available.

    For example:

    * `planwave check plan.json`
    * `planwave plan --json "Explain tides" | planwave check -`
    """
    console, settings = ctx.console(), ctx.settings()
    source = read_source(file)
    checked = _check_there if ctx.service_url else check_here
    diagnostics, graph = checked(ctx, settings, source.content)
    errors = [each for each in diagnostics if each.severity == "error"]
    warnings = sum(each.severity == "warning" for each in diagnostics)
    show_diagnostics(console, diagnostics)
    if errors:
        console.error(f"{counted(len(errors), 'error')} in {source.name}: it cannot run")
    else:
        size = counted(len(graph["nodes"]), "node") if graph is not None else "nothing"
        also = f", {counted(warnings, 'warning')}" if warnings else ""
        console.text(f"{console.glyph('completed')} {source.name} can run: {size}, no errors{also}")
    if console.json:
        findings = [each.as_json() for each in diagnostics]
        console.result({"ok": not errors, "diagnostics": findings, "graph": graph})
    if errors:
        only_providers = all(map(is_provider_error, errors))
        raise typer.Exit(ExitCode.NO_PROVIDER if only_providers else ExitCode.INVALID_PLAN)


def check_here(ctx: CommandContext, settings: Settings, source: bytes) -> _Checked:
    """Check by the node types, flows and providers of this process."""
    catalogue = ctx.factories.catalogue(settings)
    report = check_source(source, catalogue, settings.limits)
    diagnostics = report.diagnostics
    if (graph := report.graph) is not None and names_flows(graph, catalogue):
        findings = ctx.read(lambda queries: unknown_flows(graph, catalogue, queries.flows))
        diagnostics = (*diagnostics, *findings)
    return _Checked(diagnostics, report.graph_document())


def _check_there(ctx: CommandContext, settings: Settings, source: bytes) -> _Checked:
    """Check by the service that the user names, with its node types, flows and providers."""
    # Lazy: test_help_loads_no_heavy_library
    from planwave.cli.backends.remote_plans import parse_document

    try:
        document = parse_document(source)
    except GraphInvalid as error:
        return _Checked(error.diagnostics, None)
    answer = cast("Any", ctx.call_service(settings, lambda client: client.check(document)))
    diagnostics = [Diagnostic(**each) for each in answer["diagnostics"]]
    return _Checked(diagnostics, answer["graph"])

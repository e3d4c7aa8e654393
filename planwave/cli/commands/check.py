"""``planwave check``: every fault of a plan or graph file, nothing stored."""

from __future__ import annotations

from dataclasses import replace

import typer

from planwave.cli.context import CommandContext
from planwave.cli.errors import ExitCode, show_diagnostics
from planwave.cli.formatting import counted
from planwave.cli.inputs import read_source
from planwave.cli.options import FileArgument, shared_options
from planwave.service.flows.flow_references import names_flows, unknown_flows
from planwave.service.plans.documents import check_source, is_provider_error


@shared_options()
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
    catalogue = ctx.factories.catalogue(settings)
    report = check_source(source.content, catalogue, settings.limits)
    if (graph := report.graph) is not None and names_flows(graph, catalogue):
        findings = ctx.read(lambda queries: unknown_flows(graph, catalogue, queries.flows))
        report = replace(report, diagnostics=(*report.diagnostics, *findings))
    errors = [each for each in report.diagnostics if each.severity == "error"]
    warnings = sum(each.severity == "warning" for each in report.diagnostics)
    show_diagnostics(console, report.diagnostics)
    if errors:
        console.error(f"{counted(len(errors), 'error')} in {source.name}: it cannot run")
    else:
        size = counted(len(report.graph.nodes), "node") if report.graph is not None else "nothing"
        also = f", {counted(warnings, 'warning')}" if warnings else ""
        console.text(f"{console.glyph('completed')} {source.name} can run: {size}, no errors{also}")
    if console.json:
        findings = [each.as_json() for each in report.diagnostics]
        console.result(
            {"ok": not errors, "diagnostics": findings, "graph": report.graph_document()}
        )
    if errors:
        only_providers = all(map(is_provider_error, errors))
        raise typer.Exit(ExitCode.NO_PROVIDER if only_providers else ExitCode.INVALID_PLAN)

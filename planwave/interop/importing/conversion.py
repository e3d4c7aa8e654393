"""A graph being made of a file of another program, and the account of every part of that file.

A converter announces each node and edge of the source (``source_node``, ``source_edge``) and says what it
becomes. What it does not say fails closed: a node that became nothing is a placeholder, a node that lost
meaning is one too, and an edge that became nothing makes its target one.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from planwave.graph.model import Json
from planwave.interop.importing.drafts import GraphDraft, Target, new_edge, owners_of, reroute
from planwave.interop.importing.regions import drawn_back_edges
from planwave.interop.importing.secrets import Removed, holds_withheld, plain, secret_name
from planwave.interop.importing.templates import literal

if TYPE_CHECKING:
    from planwave.shapes.imports import (
        ImportedDocument,
        ImportedEdge,
        ImportedNode,
        ImportNote,
        ImportOutcome,
        ImportReport,
        ImportSetup,
        LostPart,
    )

SetupKind = Literal["provider", "mcp", "secret", "flow", "tool"]
Code = Literal[
    "import-placeholder",
    "import-changed",
    "import-expression",
    "import-many-items",
    "import-cycle",
    "import-secret-removed",
    "import-inferred-channel",
    "import-renamed",
    "import-dangling",
    "import-ignored",
]
"""Why a part of the source is not in the graph as it was; stable, as the codes of diagnostics."""

_MAX_TEXT: Final = 200
"""Characters of the source that an entry of ``lost`` shows."""
_PLACEHOLDER: Final = "placeholder"
_GONE: Final = frozenset({"placeholder", "dropped"})
"""Outcomes of a node whose graph is not in the document."""


class SourceEdge:
    """An edge of the source, and what became of it."""

    def __init__(self, pointer: str, source: SourceNode | None, target: SourceNode | None) -> None:
        self.pointer, self.source, self.target = pointer, source, target
        self.edges: list[tuple[GraphDraft, dict[str, Any]]] = []
        self.notes: list[ImportNote] = []
        self.outcome: ImportOutcome | None = None

    def becomes(
        self,
        source: Target,
        target: Target,
        source_handle: str = "output",
        target_handle: str = "input",
        *,
        channel: Literal["flow", "link"] = "flow",
    ) -> None:
        """Add an edge between two nodes of one graph; an edge of the source may become several."""
        graph = source.graph
        if graph is not target.graph:
            raise ValueError(f"{source.path} and {target.path} are in different graphs")
        edge = new_edge(graph, source.id, target.id, source_handle, target_handle, channel)
        self.edges.append((graph, edge))
        self.outcome = self.outcome or "mapped"

    def absorbed(self, message: str, code: Code = "import-changed") -> None:
        """Say that a node of the graph does what the edge did, such as one that leads into a loop's body."""
        self.note(code, message)
        self.outcome = "changed"

    def drop(self, code: Code, message: str) -> None:
        """Say that the edge is left out, and why nothing is lost by it."""
        self.note(code, message)
        self.outcome = "dropped"

    def note(self, code: Code, message: str, hint: str | None = None) -> None:
        """Say how the edge differs from the source."""
        self.notes.append(_note(code, message, self.pointer, hint))
        if self.outcome == "mapped":
            self.outcome = "changed"


class SourceNode:
    """A node of the source, and what became of it.

    Args:
        conversion: What it is part of.
        pointer: Where it stands in the source.
        kind: Its type in the words of the source.
        name: Its name there, or "".
        parameters: Its data, without secrets: what a placeholder shows.
        code: A program in it, as text: what a placeholder shows.
        position: Where it is drawn, if the source says it.

    Attributes:
        main: The one of its targets that stays as the placeholder where meaning is lost, because
            others name it; the one with its own name if None.
    """

    def __init__(
        self,
        conversion: Conversion,
        pointer: str,
        kind: str,
        name: str = "",
        *,
        parameters: Mapping[str, Any] | None = None,
        code: str = "",
        position: tuple[float, float] | None = None,
    ) -> None:
        self._conversion, self._position = conversion, position
        self.pointer, self.kind, self.name = pointer, kind, name
        self.parameters, self.code = parameters or {}, code
        self.targets: list[Target] = []
        self.main: Target | None = None
        self.notes: list[ImportNote] = []
        self._is_changed = self._is_lost = self._is_dropped = False
        self._held_by: str | None = None

    @property
    def outcome(self) -> ImportOutcome:
        if self._is_dropped:
            return "dropped"
        if self._is_lost or not self.targets:
            return "placeholder"
        return "changed" if self._is_changed else "mapped"

    @property
    def is_lost(self) -> bool:
        """Whether it lost meaning so far, so that it will be a placeholder."""
        return self._is_lost

    @property
    def target(self) -> Target:
        """The node that it became, the last one where there are several: what its output comes from."""
        return self.targets[-1]

    @property
    def entry(self) -> Target:
        """The first node that it became: what its input leads to."""
        return self.targets[0]

    def becomes(
        self,
        node_type: str,
        data: Mapping[str, Any] | None = None,
        *,
        node_id: str = "",
        name: str = "",
        description: str = "",
        policy: Mapping[str, Any] | None = None,
        graph: GraphDraft | None = None,
    ) -> Target:
        """Add a node to the graph; a node of the source may become several.

        Args:
            node_type: A type of planwave.
            data: Its data.
            node_id: The id that it gets where no other node has it; the name of the source node if "".
            name: Its name; that of the source node if "".
            description: What it does, for a model and for people.
            policy: ``{join?, retry?, timeoutS?, onError?, default?, effect?}``.
            graph: The graph that it is put into; the document if None.
        """
        graph = graph or self._conversion.graph
        new_id = graph.new_id(node_id or self.name)
        if node_id and new_id != node_id and not self.targets:
            self.note("import-renamed", f"the id {node_id!r} is {new_id!r} here")
        node: dict[str, Any] = {
            "id": new_id,
            "type": node_type,
            "name": name or self.name or new_id,
        }
        # In files of other programs braces in a task mean nothing here: they stay as they are.
        description = literal(description)
        optional = {"description": description, "data": dict(data or {}), "policy": policy}
        node |= {field: value for field, value in optional.items() if value}
        if self._position is not None:
            x, y = self._position
            node["ui"] = {"x": x + 40 * len(self.targets), "y": y + 40 * len(self.targets)}
        graph.nodes.append(node)
        target = Target(graph, new_id, node)
        self.targets.append(target)
        return target

    def body(self, label: str = "") -> GraphDraft:
        """Return a new graph for a field of its last target, such as the body of a loop."""
        return GraphDraft(f"{self.target.path}/{f'{label}/' if label else ''}", self)

    def secret_name(self, header: str) -> str:
        """Return the name of a secret of the operator for a header; no other step has it."""
        label = self.name or self.kind
        return secret_name(self._conversion.secret_names, self.pointer, label, header)

    def note(
        self, code: Code, message: str, pointer: str | None = None, hint: str | None = None
    ) -> None:
        """Say something that does not change what the node does, such as a field without bearing."""
        self.notes.append(_note(code, message, self.pointer if pointer is None else pointer, hint))

    def change(
        self,
        message: str,
        pointer: str | None = None,
        *,
        code: Code = "import-changed",
        hint: str | None = None,
    ) -> None:
        """Say how the node differs from the source; it runs all the same."""
        self.note(code, message, pointer, hint)
        self._is_changed = True

    def lose(
        self,
        message: str,
        text: str,
        pointer: str | None = None,
        *,
        code: Code = "import-expression",
    ) -> None:
        """Say what of its meaning could not be carried over: the node becomes a placeholder.

        Args:
            message: What, and why.
            text: The part of the source.
            pointer: Where it stands; the node's own place if None.
            code: Why.
        """
        place = self.pointer if pointer is None else pointer
        self._conversion.lose(place, message, text, code=code)
        self.note(code, message, place)
        self._is_lost = True

    def becomes_placeholder(self, message: str, *, hint: str | None = None) -> None:
        """Say that it has no counterpart, and why."""
        self.note("import-placeholder", message, hint=hint)
        self._is_lost = True

    def drop(self, code: Code, message: str) -> None:
        """Leave it out of the graph, and say why nothing is lost by it: a note, a step switched off."""
        self.note(code, message)
        self._is_dropped = True

    def held_by(self, path: str) -> None:
        """Say that the placeholder of another node stands for this one too: a step of a loop that got lost."""
        self._held_by, self._is_lost = path, True

    def finish(self, pointer_of_edge: Mapping[int, SourceEdge]) -> None:
        """Put a placeholder in place of what it became, where meaning was lost."""
        if self._is_dropped:
            for target in self.targets:
                self._remove(target, pointer_of_edge)
            self.targets = []
            return
        if self._held_by is not None or self.outcome != "placeholder":
            return
        if not self.notes:
            self.note("import-placeholder", f"{self.kind} has no counterpart")
        if not self.targets:
            self.becomes(_PLACEHOLDER, node_id=self.name)
        kept, *others = self.main_first()
        for other in others:
            reroute(other, kept)
            if "policy" in other.node:
                kept.node.setdefault("policy", other.node["policy"])
            other.graph.nodes.remove(other.node)
        self._conversion.replace_targets(others, kept)
        _make_placeholder(kept.node, self)

    def main_first(self) -> list[Target]:
        """Return what it became, the node with its own name first, unless that is in a body."""
        outermost = self.targets[0].graph
        is_main = [
            each.graph is outermost
            and (each.node["id"] == self.name if self.main is None else each.node is self.main.node)
            for each in self.targets
        ]
        main = is_main.index(True) if True in is_main else 0
        return [self.targets[main], *self.targets[:main], *self.targets[main + 1 :]]

    @staticmethod
    def _remove(target: Target, by_id: Mapping[int, SourceEdge]) -> None:
        graph = target.graph
        graph.nodes.remove(target.node)
        for edge in graph.edges_at(target.id):
            graph.remove_edge(edge)
            if (source_edge := by_id.get(id(edge))) is not None:
                source_edge.edges = [each for each in source_edge.edges if each[1] is not edge]
                source_edge.drop("import-dangling", "it leads to or from a node that is left out")

    def as_json(self) -> ImportedNode:
        """Return the entry of the report."""
        target = [each.path for each in self.targets] if self._held_by is None else [self._held_by]
        return {
            "source": self.pointer,
            "source_kind": self.kind,
            "source_name": self.name,
            "outcome": self.outcome,
            "target": target,
            "notes": self.notes,
        }


class Conversion:
    """The graph and the report of one import.

    Args:
        kind: The format of the source, such as ``agentflow``.
        kind_version: Its version, as the source says it.
        title: The title of the graph, or "".
        user_prompt: The goal, or "".

    Attributes:
        graph: The document's graph.
        options: Options of the run that the source has in its graph.
        code: The module with the source's programs as node types; "" if there is none.
    """

    def __init__(
        self, kind: str, kind_version: str | None = None, title: str = "", user_prompt: str = ""
    ) -> None:
        self.kind, self.kind_version = kind, kind_version
        self.title, self.user_prompt = title, user_prompt
        self.graph = GraphDraft()
        self.options: dict[str, Json] = {}
        self.code = ""
        self.secret_names: dict[str, str] = {}
        self.nodes: list[SourceNode] = []
        self.edges: list[SourceEdge] = []
        self._users: defaultdict[int, list[SourceNode]] = defaultdict(list)
        self._notes: list[ImportNote] = []
        self._lost: list[LostPart] = []
        self._setup: dict[tuple[SetupKind, str], list[Target]] = {}

    def source_node(self, pointer: str, kind: str, name: str = "", **more: Any) -> SourceNode:
        """Announce a node of the source; see ``SourceNode`` for the arguments."""
        node = SourceNode(self, pointer, kind, name, **more)
        self.nodes.append(node)
        return node

    def source_edge(
        self, pointer: str, source: SourceNode | None, target: SourceNode | None
    ) -> SourceEdge:
        """Announce an edge of the source; None for an end that is not there."""
        edge = SourceEdge(pointer, source, target)
        self.edges.append(edge)
        return edge

    def note(self, code: Code, message: str, pointer: str = "", hint: str | None = None) -> None:
        """Say something of the file as a whole."""
        self._notes.append(_note(code, message, pointer, hint))

    def lose(self, pointer: str, message: str, text: str, *, code: Code = "import-ignored") -> None:
        """Say what of the file is not in the graph; of a node say it by the node's own ``lose``."""
        self._lost.append(
            {"pointer": pointer, "code": code, "text": text[:_MAX_TEXT], "message": message}
        )

    def needs(self, what: SetupKind, name: str, used_by: Target | None = None) -> None:
        """Say what the operator has to provide, for a node or for the file as a whole."""
        users = self._setup.setdefault((what, name), [])
        if used_by is not None:
            users.append(used_by)

    def set_option(self, name: str, value: Json, pointer: str, message: str) -> None:
        """Say that the source's graph has what is an option of the run here."""
        self.options[name] = value
        self.note("import-changed", message, pointer)

    def replace_targets(self, gone: Sequence[Target], kept: Target) -> None:
        """Name another node in the report where some were taken out of the graph."""
        nodes = {id(each.node) for each in gone}
        users = {id(node): node for each in nodes for node in self._users[each]}
        for node in users.values():
            node.targets = [each for each in node.targets if id(each.node) not in nodes]
            if all(each.node is not kept.node for each in node.targets):
                node.targets.append(kept)
                self._users[id(kept.node)].append(node)

    def use_provider(self, provider: str, model: str | None) -> None:
        """Let every step that names a provider ask another one.

        Args:
            provider: Its name.
            model: A model of it; None for its default.
        """
        asked = [
            each for (what, _), users in self._setup.items() if what == "provider" for each in users
        ]
        self._setup = {key: users for key, users in self._setup.items() if key[0] != "provider"}
        for target in asked:
            self.needs("provider", provider, target)
        for node in self.nodes:
            for data in (target.node.get("data", {}) for target in node.targets):
                if "provider" not in data:
                    continue
                before = ":".join(str(data[name]) for name in ("provider", "model") if name in data)
                data.pop("model", None)
                data |= {"provider": provider, **({} if model is None else {"model": model})}
                node.change(f"it asks {provider}, as the import was told, in place of {before}")

    def finish(
        self, text: str, removed: Sequence[Removed]
    ) -> tuple[ImportedDocument, ImportReport]:
        """Return the document and its report; called once, by the importer.

        Args:
            text: The source, of which the report has the SHA-256.
            removed: The secrets that were taken out of it.
        """
        self._settle_secrets(removed)
        for edge in self.edges:
            self._settle_edge(edge)
        by_edge = {id(made): each for each in self.edges for _, made in each.edges}
        self._break_cycles(by_edge)
        for node in self.nodes:
            for target in node.targets:
                self._users[id(target.node)].append(node)
        for node in self._inner_first():
            node.finish(by_edge)
        self._settle_bodies()
        self._drop_vanished_edges()
        self._settle_policies()
        around = {"title": self.title, "user_prompt": self.user_prompt}
        document: dict[str, Any] = {
            **{name: text for name, text in around.items() if text},
            **self.graph.document(),
        }
        return cast("ImportedDocument", plain(document)), self._report(text, removed)

    def _settle_secrets(self, removed: Sequence[Removed]) -> None:
        """Note each secret at its node; a node that would send the mark instead of it cannot run."""
        for secret in removed:
            for node in self.nodes:
                if secret.pointer.startswith(f"{node.pointer}/"):
                    node.change(
                        f"the secret {secret.name!r} was not copied",
                        secret.pointer,
                        code="import-secret-removed",
                        hint="provide it as a secret of the operator",
                    )
        for node in self.nodes:
            made = [target for target in node.targets if target.node["type"] != _PLACEHOLDER]
            if any(holds_withheld(target.node) for target in made):
                node.becomes_placeholder("it needs a secret that was not copied")

    def _settle_edge(self, edge: SourceEdge) -> None:
        if edge.outcome is not None:
            return
        if edge.source is None or edge.target is None:
            edge.drop("import-dangling", "it leads to or from a node that is not there")
            return
        edge.drop("import-ignored", "it could not be carried over")
        edge.target.becomes_placeholder("an edge that leads to it could not be carried over")

    def _break_cycles(self, by_edge: Mapping[int, SourceEdge]) -> None:
        """Leave out edges that close a cycle, which no converter made a loop of; their ends cannot run."""
        owners = {(id(t.graph), t.id): node for node in self.nodes for t in node.targets}
        for graph in {id(t.graph): t.graph for node in self.nodes for t in node.targets}.values():
            while backs := drawn_back_edges(graph.edges, _shown(graph, owners)):
                for edge, path in backs:
                    circle = " → ".join(path)
                    graph.remove_edge(edge)
                    message = f"it closes the cycle {circle}, which is no loop here"
                    if (source_edge := by_edge.get(id(edge))) is not None:
                        source_edge.edges = [e for e in source_edge.edges if e[1] is not edge]
                        source_edge.drop("import-cycle", message)
                    for end in ("source", "target"):
                        node = owners[id(graph), edge[end]]
                        message = f"the cycle {circle} is no loop here"
                        node.lose(message, circle, code="import-cycle")

    def _inner_first(self) -> Iterator[SourceNode]:
        """Yield nodes of the deepest graphs first, so that the placeholder of a loop finds them finished."""
        depth = {
            id(n): max((t.graph.path.count("/") for t in n.targets), default=0) for n in self.nodes
        }
        yield from sorted(self.nodes, key=lambda node: -depth[id(node)])

    def _settle_bodies(self) -> None:
        """Account for the nodes of a body whose owner became a placeholder: they are not drawn."""
        for node in self.nodes:
            owners = [owner for target in node.targets for owner in owners_of(target.graph)]
            lost = [owner for owner in owners if owner.outcome in _GONE]
            if lost:
                outermost = lost[-1]
                node.held_by(outermost.as_json()["target"][0] if outermost.targets else "")
                node.note(
                    "import-placeholder", f"it stands inside {outermost.name or outermost.kind}"
                )

    def _drop_vanished_edges(self) -> None:
        """Say of edges that stood between the targets of a node, or in a lost body, that they are gone."""
        graphs = {id(graph): graph for edge in self.edges for graph, _ in edge.edges}
        there = {
            id(made) for graph in graphs.values() if not _is_lost(graph) for made in graph.edges
        }
        for edge in self.edges:
            present = [each for each in edge.edges if id(each[1]) in there]
            if edge.edges and not present:
                edge.drop("import-placeholder", "it stood inside what is a placeholder now")
            edge.edges = present

    def _settle_policies(self) -> None:
        """Let a placeholder not go on after errors where the edge of its errors was left out."""
        for target in (each for node in self.nodes for each in node.targets):
            policy = target.node.get("policy")
            if target.node["type"] != _PLACEHOLDER or not policy:
                continue
            ends = [(edge["source"], edge["sourceHandle"]) for edge in target.graph.edges]
            if policy.get("onError") == "continue" and (target.id, "error") not in ends:
                del policy["onError"]
            if not policy:
                del target.node["policy"]

    def _report(self, text: str, removed: Sequence[Removed]) -> ImportReport:
        nodes = [node.as_json() for node in self.nodes]
        counts = Counter(node["outcome"] for node in nodes)
        setup: list[ImportSetup] = [
            {"what": what, "name": name, "used_by": [each.path for each in _unique(users)]}
            for (what, name), users in self._setup.items()
        ]
        edges: list[ImportedEdge] = [
            {
                "source": edge.pointer,
                "outcome": edge.outcome or "dropped",
                "target": [graph.path + made["id"] for graph, made in edge.edges],
                "notes": edge.notes,
            }
            for edge in self.edges
        ]
        report: ImportReport = {
            "kind": self.kind,
            "kind_version": self.kind_version,
            "title": self.title,
            "source_sha256": hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
            "options": dict(self.options),
            "nodes": nodes,
            "edges": edges,
            "notes": self._notes,
            "lost": self._lost,
            "secrets": [{"pointer": each.pointer, "name": each.name} for each in removed],
            "setup": setup,
            "summary": {
                "mapped": counts["mapped"],
                "changed": counts["changed"],
                "placeholder": counts["placeholder"],
                "dropped": counts["dropped"],
            },
        }
        return cast("ImportReport", plain(report))


def _note(code: Code, message: str, pointer: str, hint: str | None = None) -> ImportNote:
    note: ImportNote = {"code": code, "message": message, "pointer": pointer}
    if hint is not None:
        note["hint"] = hint
    return note


def _make_placeholder(node: dict[str, Any], source: SourceNode) -> None:
    """Turn a node into a placeholder, in place; its edges stay."""
    data: dict[str, Any] = {"kind": source.kind or "unknown"}
    optional = {"name": source.name, "parameters": dict(source.parameters), "code": source.code}
    data |= {name: value for name, value in optional.items() if value}
    node.pop("description", None)
    node["type"], node["data"] = _PLACEHOLDER, data


def _shown(graph: GraphDraft, owners: Mapping[tuple[int, str], SourceNode]) -> dict[str, str]:
    """Return the node that is drawn for each: those of one that lost meaning will be one placeholder."""
    shown = {each["id"]: each["id"] for each in graph.nodes}
    for node_id in shown:
        owner = owners[id(graph), node_id]
        if owner.outcome == "placeholder" and (first := owner.main_first()[0]).graph is graph:
            shown[node_id] = first.id
    return shown


def _is_lost(graph: GraphDraft) -> bool:
    return any(owner.outcome in _GONE for owner in owners_of(graph))


def _unique(targets: Iterable[Target]) -> list[Target]:
    return list({target.path: target for target in targets}.values())

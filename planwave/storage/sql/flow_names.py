"""The names of flows in the writer thread: who has one, what leads to it, and what goes with it."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

from sqlalchemy import Connection, delete, select, union_all, update

from planwave.storage.errors import flow_in_use, name_taken, not_found
from planwave.storage.event_codec import storable_text
from planwave.storage.sql.dialects import position_of
from planwave.storage.sql.locks import lock, lock_shared
from planwave.storage.sql.schema import (
    access_tokens,
    deliveries,
    notification_targets,
    notifications,
    plans,
    revisions,
    triggers,
)

_NAMES_FLOW: Final = '"flow":{'
"""In the JSON of stored documents, which has no spaces."""


def name_key(name: str) -> str:
    """Return the form of the name of a flow that is the same for names that differ in case only."""
    decomposed = unicodedata.normalize("NFD", name)
    return storable_text(unicodedata.normalize("NFC", decomposed.casefold()))


def require_free_name(connection: Connection, plan_id: str, name: str | None) -> None:
    """Raise if another plan has the name of a plan.

    Raises:
        Conflict: ``name-taken``.
    """
    if name is None:
        return
    lock(connection, "flow-name", name_key(name))
    other = connection.execute(
        select(plans.c.plan_id).where(
            plans.c.name_key == name_key(name), plans.c.plan_id != plan_id
        )
    ).scalar()
    if other is not None:
        raise name_taken(name, other)


def require_flows(connection: Connection, plan_ids: Iterable[str]) -> None:
    """Raise if one of these plans is not stored, or has no name.

    Raises:
        NotFound: It is no flow.
    """
    for plan_id in sorted(plan_ids):  # in one order, or two transactions wait for each other
        lock_shared(connection, "plan", plan_id)
        own = select(plans.c.name).where(plans.c.plan_id == storable_text(plan_id))
        if connection.execute(own).scalar() is None:
            raise not_found("flow", plan_id)


def require_revision(connection: Connection, plan_id: str, revision: int | None) -> None:
    """Raise if a stored plan has no longer a revision that is to be pinned, and keep it to the end of the transaction.

    Raises:
        NotFound: It was removed.
    """
    if revision is None:
        return
    lock_shared(connection, "plan", plan_id)
    own = revisions.c.plan_id == plan_id, revisions.c.revision == revision
    if connection.execute(select(revisions.c.revision).where(*own)).first() is None:
        current = select(plans.c.document).where(plans.c.plan_id == plan_id)
        document = connection.execute(current).scalar()
        if document is not None and json.loads(document).get("revision", 1) > revision:
            raise not_found(f"revision {revision} of plan", plan_id)


def release_name(connection: Connection, plan_id: str, *, force: bool) -> None:
    """Make sure that nothing leads to the name of a flow.

    Args:
        connection: In the transaction that takes the name away.
        plan_id: The plan; nothing is done for one without a name.
        force: Whether to remove the publication, triggers, targets of notifications and the flow in
            access tokens; graphs that name it stay as they are.

    Raises:
        Conflict: ``flow-in-use``: without ``force``; all that leads to it is listed.
    """
    lock(connection, "plan", plan_id)
    row = connection.execute(
        select(plans.c.name, plans.c.published).where(plans.c.plan_id == plan_id)
    ).first()
    if row is None or row.name is None:
        return
    if not force:
        uses = [f"it is published as a {each}" for each in row.published.split()]
        uses += _uses(connection, plan_id, row.name)
        if uses:
            raise flow_in_use(row.name, uses)
        return
    connection.execute(update(plans).where(plans.c.plan_id == plan_id).values(published=""))
    own = select(triggers.c.trigger_id).where(triggers.c.plan_id == plan_id)
    connection.execute(own.with_for_update())  # no delivery is claimed meanwhile
    connection.execute(delete(deliveries).where(deliveries.c.trigger_id.in_(own)))
    connection.execute(delete(triggers).where(triggers.c.plan_id == plan_id))
    targets = select(notification_targets.c.target_id).where(
        notification_targets.c.plan_id == plan_id
    )
    connection.execute(delete(notifications).where(notifications.c.target_id.in_(targets)))
    connection.execute(
        delete(notification_targets).where(notification_targets.c.plan_id == plan_id)
    )
    _remove_from_tokens(connection, plan_id)


def _uses(connection: Connection, plan_id: str, name: str) -> Iterator[str]:
    """Yield what leads to a flow besides its publication, as a sentence each."""
    own = triggers.c.plan_id == plan_id
    for node_id, kind in connection.execute(select(triggers.c.node_id, triggers.c.kind).where(own)):
        yield f"the trigger of its {kind} node {node_id!r}"
    for token in _tokens_of(connection, plan_id):
        yield f"the access token {token.name!r}"
    of_flow = notification_targets.c.plan_id == plan_id
    for (url,) in connection.execute(select(notification_targets.c.url).where(of_flow)):
        yield f"notifications to {url}"
    named = [other for other, _ in graphs_that_name(connection, plan_id, name)]
    for title in dict.fromkeys(named):
        yield f"the graph {title!r} names it"


def graphs_that_name(
    connection: Connection, plan_id: str, name: str | None
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the title of each other stored graph that names a flow, and the ``data.flow`` that does.

    The newest revisions count, and those that lie under a draft and are started. All documents are searched as
    text first; those that name any flow are parsed.
    """
    other = plans.c.plan_id != plan_id
    newest = select(plans.c.title, plans.c.document).where(
        position_of(plans.c.document, _NAMES_FLOW) > 0, other
    )
    live = select(plans.c.title, revisions.c.document).where(
        revisions.c.plan_id == plans.c.plan_id,
        revisions.c.revision.in_((plans.c.sound_revision, plans.c.approved_revision)),
        position_of(revisions.c.document, _NAMES_FLOW) > 0,
        other,
    )
    key = None if name is None else name_key(name)
    for title, document in connection.execute(union_all(newest, live)):
        for flow in _flows_in(json.loads(document).get("nodes")):
            named = flow.get("name")
            is_named = isinstance(named, str) and name_key(named) == key
            if flow.get("id") == plan_id or is_named:
                yield title, flow


def _flows_in(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield the values of the fields ``flow`` that are objects, at any depth."""
    if isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _flows_in(item)
    elif isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        if isinstance(flow := fields.get("flow"), dict):
            yield cast("dict[str, Any]", flow)
        for item in fields.values():
            yield from _flows_in(item)


def _tokens_of(connection: Connection, plan_id: str) -> list[Any]:
    """Return the id, name and flows of the access tokens that have a flow; lock all tokens, which are few."""
    columns = access_tokens.c
    rows = connection.execute(
        select(columns.token_id, columns.name, columns.flows)
        .order_by(columns.token_id)
        .with_for_update()
    )
    return [row for row in rows if plan_id in json.loads(row.flows)]


def _remove_from_tokens(connection: Connection, plan_id: str) -> None:
    """Take a flow out of the access tokens; one without any flow left goes."""
    for token_id, _, flows in _tokens_of(connection, plan_id):
        others = [each for each in json.loads(flows) if each != plan_id]
        of_token = access_tokens.c.token_id == token_id
        if others:
            connection.execute(
                update(access_tokens).where(of_token).values(flows=json.dumps(others))
            )
        else:
            connection.execute(delete(access_tokens).where(of_token))

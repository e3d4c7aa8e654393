import { expect, test } from "vitest";
import type { ExecutionEvent, GraphDocument } from "@/api/types";
import { applyEvents } from "./reducer";
import { newRunState } from "./runState";
import { writtenGraph } from "./writtenChange";

const flow = { channel: "flow" };
const BEFORE: GraphDocument = {
  nodes: ["a", "old", "end"].map((id) => ({ id, type: "text", data: { text: id } })),
  edges: [
    { id: "1", source: "a", target: "old", data: flow },
    { id: "2", source: "old", target: "end", data: flow },
  ],
};

function lines(...parts: object[]): string {
  return parts.map((part) => `${JSON.stringify(part)}\n`).join("");
}

const operation = (op: string, more: object) => ({ kind: "operation", op, ...more });

/** Returns a graph in short: "a>b", and the ids of nodes without edges. */
function short({ nodes, edges }: GraphDocument): string {
  const wires = edges.map(({ source, target }) => `${source}>${target}`);
  return [...nodes.map(({ id }) => id), ...wires].join(" ");
}

test("nothing written leaves the graph as it is, the same object", () => {
  expect(writtenGraph(BEFORE, "")).toBe(BEFORE);
  expect(writtenGraph(BEFORE, '{"kind":"node","id":"ne')).toBe(BEFORE);
});

test("each part is applied once its line is whole", () => {
  const written = lines(
    operation("remove_node", { id: "old" }),
    { kind: "node", id: "new", name: "New", type: "agent", description: "Do it" },
    { kind: "edge", source: "a", target: "new", channel: "flow" },
    { kind: "edge", source: "new", target: "end" },
  );
  expect(short(writtenGraph(BEFORE, written))).toBe("a end new a>new new>end");
  expect(short(writtenGraph(BEFORE, written.slice(0, -2)))).toBe("a end new a>new");
  const [, , node] = writtenGraph(BEFORE, written).nodes;
  expect(node).toMatchObject({ name: "New", type: "agent", description: "Do it" });
});

test("what is set of a step is changed, the rest of it stays", () => {
  const set = { description: "Say it", data: { model: "m" } };
  const after = writtenGraph(BEFORE, lines(operation("update_node", { id: "end", set })));
  expect(after.nodes[2]).toEqual({
    ...{ id: "end", type: "text", description: "Say it" },
    data: { text: "end", model: "m" },
  });
});

test("what is set to anything but text is left out: the page could not show it", () => {
  const set = { name: { first: 1 }, type: 5, description: ["Say it"], data: "none" };
  const after = writtenGraph(BEFORE, lines(operation("update_node", { id: "end", set })));
  expect(after.nodes[2]).toEqual(BEFORE.nodes[2]);
});

test("wires are taken out, of all handles or of those that are named, and ids are changed", () => {
  const gone = operation("remove_edge", { source: "a", target: "old" });
  expect(short(writtenGraph(BEFORE, lines(gone)))).toBe("a old end old>end");
  const other = operation("remove_edge", { source: "a", target: "old", source_handle: "error" });
  expect(short(writtenGraph(BEFORE, lines(other)))).toBe(short(BEFORE));
  const renamed = operation("rename", { id: "old", to: "now" });
  expect(short(writtenGraph(BEFORE, lines(renamed)))).toBe("a now end a>now now>end");
});

test("a reply that is written again voids what was there", () => {
  const first = lines(operation("remove_node", { id: "a" }), { kind: "repair", attempt: 2 });
  expect(writtenGraph(BEFORE, first)).toBe(BEFORE);
  const again = first + lines({ kind: "node", id: "new" });
  expect(short(writtenGraph(BEFORE, again))).toBe("a old end new a>old old>end");
});

test("lines that say nothing are passed over", () => {
  const odd = `{}\nnull\n[1]\nNaN\n${lines(operation("set_title", { title: "x" }), { kind: "edge" })}`;
  expect(short(writtenGraph(BEFORE, odd))).toBe(short(BEFORE));
});

test("the state of a run has what is written of a change while it is open, from the beginning where it is told again", () => {
  const event = (seq: number, type: string, data: object) =>
    ({ ...{ execution_id: "x", seq, at: "2026-01-01T00:00:00Z", type, data } }) as ExecutionEvent;
  const written = (text: string, offset: number) =>
    event(0, "node.delta", { kind: "plan", text, offset });
  let state = applyEvents(newRunState("x"), [written("late", 0)]);
  expect(state.writtenChange.tail).toBe("");
  state = applyEvents(state, [event(1, "plan.requested", { change: 1, by: "failure", path: "a" })]);
  state = applyEvents(state, [written("one ", 0), written("two", 4)]);
  expect(state.writtenChange.tail).toBe("one two");
  expect(applyEvents(state, [written("one two", 0)]).writtenChange.tail).toBe("one two");
  expect(applyEvents(state, [written("an", 0)]).writtenChange.tail).toBe("an");
  expect([...state.nodes]).toEqual([]);
  const refused = event(2, "plan.refused", { change: 1, error: { code: "c", message: "m" } });
  expect(applyEvents(state, [refused]).writtenChange.tail).toBe("");
});

import { beforeEach, expect, test, vi } from "vitest";
import type { ImportReport } from "@/api/types";
import { createEditorStore, type SavedPlan } from "./editorStore";
import { addNode, updateNode } from "./graphEdits";

const node = (id: string, data = {}) => ({ id, type: "text", data });
const PLAN: SavedPlan = {
  title: "T",
  graph: { nodes: [node("a"), node("b")], edges: [] },
  hash: "h1",
  revision: 1,
};
const ids = (store: ReturnType<typeof createEditorStore>) =>
  store.getState().content.graph.nodes.map((each) => each.id);

beforeEach(() => {
  vi.useFakeTimers({ now: 0 });
  return () => vi.useRealTimers();
});

function editor() {
  const store = createEditorStore(PLAN);
  const add = (id: string) => store.changeGraph(addNode(store.getState().content.graph, node(id)));
  const type = (text: string) =>
    store.changeGraph(
      updateNode(store.getState().content.graph, "a", { data: { text } }),
      "a.text",
    );
  return { store, add, type };
}

test("changes are undone and redone in order", () => {
  const { store, add } = editor();
  add("c");
  add("d");
  store.undo();
  expect(ids(store)).toEqual(["a", "b", "c"]);
  store.undo();
  store.undo();
  expect(ids(store)).toEqual(["a", "b"]);
  store.redo();
  expect(ids(store)).toEqual(["a", "b", "c"]);
  add("e");
  store.redo();
  expect(ids(store)).toEqual(["a", "b", "c", "e"]);
});

test("what is typed without a pause is undone at once", () => {
  const { store, type } = editor();
  type("h");
  vi.advanceTimersByTime(100);
  type("hi");
  vi.advanceTimersByTime(2000);
  type("hi you");
  store.undo();
  expect(store.getState().content.graph.nodes[0]?.data).toEqual({ text: "hi" });
  store.undo();
  expect(store.getState().content.graph.nodes[0]?.data).toEqual({});
});

test("what is changed while a save is under way stays unsaved", () => {
  const { store, add } = editor();
  add("c");
  const sent = store.getState().content;
  add("d");
  store.accept({ ...PLAN, graph: sent.graph, hash: "h2", revision: 2 }, sent);
  expect(store.unsaved()).toEqual([{ op: "add_node", node: node("d") }]);
  expect(store.getState().saved.revision).toBe(2);
});

test("the report of an import stays with its graph: through saves and merges, and until it is undone", () => {
  const [first, second] = [{ title: "First" }, { title: "Second" }] as ImportReport[];
  const plan = { ...PLAN, imported: first };
  const store = createEditorStore(plan);
  const imported = () => store.getState().content.imported;
  store.change({ title: "Other", graph: PLAN.graph, imported: second });
  const sent = store.getState().content;
  store.accept({ ...plan, title: "Other", hash: "h2", revision: 2 }, sent);
  expect(imported()).toBe(second);
  store.rebase({ ...plan, title: "Theirs", hash: "h3", revision: 3 });
  expect(imported()).toBe(second);
  store.change({ title: "Third", graph: PLAN.graph, imported: undefined });
  store.undo();
  expect(imported()).toBe(second);
});

test("a plan that somebody else has changed keeps their changes and the own ones", () => {
  const { store, type } = editor();
  type("mine");
  const theirs = { ...PLAN, graph: addNode(PLAN.graph, node("theirs")), hash: "h2", revision: 2 };
  store.rebase(theirs);
  expect(ids(store)).toEqual(["a", "b", "theirs"]);
  expect(store.unsaved()).toEqual([
    { op: "update_node", id: "a", set: { data: { text: "mine" } } },
  ]);
  expect(store.getState().lost).toEqual([]);
});

test("own changes of a step that somebody else has removed are named", () => {
  const { store, type } = editor();
  type("mine");
  store.rebase({ ...PLAN, graph: { nodes: [node("b")], edges: [] }, hash: "h2", revision: 2 });
  expect(store.getState().lost).toEqual(["the change of a"]);
  expect(store.unsaved()).toEqual([]);
});

test("two new steps of one id are both kept", () => {
  const { store, add } = editor();
  add("agent");
  const graph = store.getState().content.graph;
  const edge = { id: "a-agent", source: "a", target: "agent", data: { channel: "flow" as const } };
  store.changeGraph({ ...graph, edges: [edge] });
  const theirs = addNode(PLAN.graph, { ...node("agent"), name: "theirs" });
  store.rebase({ ...PLAN, graph: { ...theirs, edges: [edge] }, hash: "h2", revision: 2 });
  expect(ids(store)).toEqual(["a", "b", "agent", "agent_2"]);
  expect(store.unsaved()).toEqual([
    { op: "add_node", node: node("agent_2") },
    { op: "add_edge", edge: { ...edge, id: "a-agent_2", target: "agent_2" } },
  ]);
});

test("a request that changed the whole plan can be undone", () => {
  const { store } = editor();
  store.replace({ ...PLAN, graph: { nodes: [node("b")], edges: [] }, hash: "h2", revision: 2 });
  expect(ids(store)).toEqual(["b"]);
  store.undo();
  expect(ids(store)).toEqual(["a", "b"]);
  expect(store.unsaved()).toEqual([{ op: "add_node", node: node("a") }]);
});

test("what is saved keeps the nodes that are the same: their cards are not drawn anew", () => {
  const { store, type } = editor();
  type("mine");
  const [a, b] = store.getState().content.graph.nodes;
  const sent = store.getState().content;
  const answer = structuredClone({ ...PLAN, graph: sent.graph, hash: "h2", revision: 2 });
  store.accept(answer, sent);
  const { content, saved } = store.getState();
  expect(content.graph.nodes[0]).toBe(a);
  expect(content.graph.nodes[1]).toBe(b);
  expect([saved.hash, store.unsaved()]).toEqual(["h2", []]);
});

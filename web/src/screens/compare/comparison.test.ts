import { expect, test } from "vitest";
import type {
  DifferenceResponse,
  DocumentNode,
  DocumentResponse,
  NodeDifference,
} from "@/api/types";
import {
  againstWords,
  changedWords,
  factsOf,
  firstChosen,
  glyphOf,
  nodesOf,
  outputOf,
  relationOf,
  secondsOfStep,
  stepsOf,
  timeWords,
} from "@/screens/compare/comparison";

const AT = "2026-11-23T12:00:00+00:00";

function node(path: string, seconds: number | null, more: Partial<DocumentNode> = {}) {
  const name = path.toUpperCase();
  return { path, name, status: "completed", execution_time: seconds, ...more } as DocumentNode;
}

function run(nodes: DocumentNode[], more: Partial<DocumentResponse> = {}): DocumentResponse {
  const usage = { calls: 2, input_tokens: 100, output_tokens: 20, cost_usd: 0.0011 };
  const document = {
    plan_id: "p",
    plan_hash: "h",
    user_prompt: "goal",
    status: "completed",
    started_at: AT,
    completed_at: "2026-11-23T12:01:01+00:00",
    usage: { ...usage, estimated: false },
    graph: null,
    nodes,
  };
  return { ...document, ...more } as DocumentResponse;
}

/** Returns what the service says of two runs: these nodes differ. */
function differing(...nodes: Partial<NodeDifference>[]): DifferenceResponse {
  const same = { change: "changed", status: ["completed", "completed"] };
  return { nodes: nodes.map((each) => ({ ...same, ...each })) } as DifferenceResponse;
}

test("facts say what is less, more or the same in B, and nothing where a number is missing", () => {
  const cheap = { calls: 2, input_tokens: 90, output_tokens: 20, cost_usd: null, estimated: false };
  const b = run([], { completed_at: "2026-11-23T12:02:00+00:00", usage: cheap });
  expect(factsOf([run([]), b], 0)).toEqual([
    { label: "Took", words: ["1:01", "2:00"], trend: "more" },
    { label: "Tokens", words: ["120", "110"], trend: "less" },
    { label: "Cost", words: ["$0.0011", "–"], trend: "none" },
    { label: "Calls", words: ["2", "2"], trend: "same" },
  ]);
});

test("a run that goes on has taken the time until now", () => {
  const live = run([], { status: "executing", completed_at: null });
  const unstarted = run([], { status: "starting", started_at: null, completed_at: null });
  const [took] = factsOf([live, unstarted], Date.parse(AT) + 24_900);
  expect(took?.words).toEqual(["0:24", "not started"]);
  expect(took?.trend).toBe("none");
});

test("steps of both runs stand side by side; nested and linked ones are left out", () => {
  const a = run([node("a", 6.5), node("b", 1), node("b/1/x", 1), node("only", 1)]);
  const b = run([
    node("a", 2.1),
    node("b", 1.02),
    node("m", null, { status: "linked" }),
    node("c", 3),
  ]);
  const difference = differing(
    {
      path: "b",
      written: ["data.text", "name", "policy"],
      status: ["completed", "failed"],
      outputs: {},
    },
    { path: "only", change: "only_a" },
    { path: "c", change: "only_b" },
  );
  const steps = stepsOf([a, b], difference);
  expect(steps.map((step) => [step.name, againstWords(step).words])).toEqual([
    ["A", "4.4 s less"],
    ["B", "same"],
    ["ONLY", "only in A"],
    ["C", "only in B"],
  ]);
  expect(changedWords(steps)).toBe("3 of 4");
  expect(firstChosen(steps)?.path).toBe("b");
  expect(steps.map(({ differs }) => differs.join(", "))).toEqual([
    "",
    "settings (text), name, retries and timeouts, status, output",
    "",
    "",
  ]);
  expect(nodesOf([a, b], difference).map(({ path }) => path)).toContain("m");
});

test("a step that the service does not tell of differs by what both runs have of it", () => {
  const a = run([node("a", 1, { result: "x" }), node("b", 1)]);
  const b = run([node("a", 1, { result: "y" }), node("b", 1)]);
  const changes = stepsOf([a, b], differing()).map(({ change }) => change);
  expect(changes).toEqual(["changed", "same"]);
});

test("with nothing changed the last step is looked at; a step that did not run has no difference", () => {
  const runs = [run([node("a", 1), node("b", null)]), run([node("a", 1), node("b", 2)])] as const;
  const steps = stepsOf(runs, differing());
  expect(firstChosen(steps)?.path).toBe("b");
  expect(againstWords(steps[1] as never)).toEqual({ words: "", trend: "none" });
  expect(firstChosen([])).toBeUndefined();
});

test("a result that was reused took no time, and is neither faster nor slower", () => {
  const reused = { execution_id: "x", path: "a", failed_inside: false };
  const [step] = stepsOf([run([node("a", 4.1)]), run([node("a", 0, { reused })])], differing());
  if (!step) throw new Error("no step");
  expect(secondsOfStep(step)).toEqual([4.1, null]);
  expect(step.nodes.map((each) => each && timeWords(each))).toEqual(["4.1 s", "reused"]);
  expect(againstWords(step).words).toBe("");
});

test("the relation of two runs is that of their plans and goals", () => {
  const a = run([]);
  expect(relationOf([a, run([])])).toBe("Same plan, same goal");
  expect(relationOf([a, run([], { plan_hash: "i" })])).toBe("Same plan, changed, same goal");
  const other = run([], { plan_hash: "i", plan_id: "q", user_prompt: "x" });
  expect(relationOf([a, other])).toBe("Other plans, other goals");
});

test("the glyph has a column for each wave of the graph", () => {
  const graph = {
    nodes: [{ id: "a" }, { id: "b" }],
    edges: [{ source: "a", target: "b", data: { channel: "flow" } }],
  };
  const nodes = [node("a", 1), node("b", null, { status: "failed" })];
  expect(glyphOf(run(nodes, { graph }))).toEqual([["completed"], ["failed"]]);
  expect(glyphOf(run(nodes))).toEqual([]);
});

test("a step that failed gave its error", () => {
  expect(outputOf(node("a", 1, { result: "text", error: null }))).toBe("text");
  expect(outputOf(node("a", 1, { result: null, error: "no key" }))).toBe("no key");
  expect(outputOf(undefined)).toBe("");
});

import { expect, test } from "vitest";
import { changedWords } from "./changedWords";

const GRAPH = {
  nodes: [
    { id: "a", type: "agent", name: "Facts" },
    { id: "b", type: "loop", name: "Rounds" },
    { id: "c", type: "agent" },
    { id: "d", type: "agent", name: "New" },
  ],
  edges: [],
};

function ran(path: string, tokens: number, cost: number | null, isReused = false) {
  const usage = {
    calls: 1,
    input_tokens: tokens,
    output_tokens: 0,
    cost_usd: cost,
    estimated: false,
  };
  return {
    path,
    usage,
    reused: isReused ? { execution_id: "e", path, failed_inside: false } : null,
  };
}

test("says how many results are reused, what runs, and what that took then, rounds included", () => {
  const nodes = [
    ran("a", 900, 0.5),
    ran("b", 0, null),
    ran("b[1]/x", 40, 0.002),
    ran("c", 2, null),
  ];
  const preview = { reused: ["a"], runs: ["b"], undecided: ["c"] };
  expect(changedWords(preview, GRAPH, nodes, "14:02")).toBe(
    "1 result of the run of 14:02 is reused; “Rounds” runs, then “c” if given something else. They took 42 tokens, $0.0020 then.",
  );
});

test("does not say the cost of a step that did not run then", () => {
  const preview = { reused: ["a", "b"], runs: ["c", "d"], undecided: [] };
  const words = (nodes: ReturnType<typeof ran>[]) => changedWords(preview, GRAPH, nodes, "14:02");
  expect(words([ran("c", 7, 0.1)])).toContain("They took 7 tokens, $0.1");
  expect(words([ran("c", 7, 0.1)])).toContain("without those that did not run.");
  expect(words([ran("c", 0, null, true)])).toContain("What it costs is not known.");
  expect(changedWords(preview, GRAPH, undefined, "14:02")).not.toContain("cost");
});

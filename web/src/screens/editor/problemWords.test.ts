import { expect, test } from "vitest";
import { problemWords } from "./problemWords";

const GRAPH = { nodes: [{ id: "b", type: "agent", name: "Book" }], edges: [] };

test.each([
  [
    "data.prompt is required",
    "write data.prompt, or connect an edge to the handle 'prompt'",
    "“Prompt” is required (write “Prompt”, or connect a wire to “Prompt”)",
  ],
  ["data.fallback.0.model is empty", undefined, "“Fallback”, number 1, “Model” is empty"],
  ["node 'b' uses 'other'", undefined, "node “Book” uses 'other'"],
  ["the data of it are metadata.x", undefined, "the data of it are metadata.x"],
])("%s is said in words of the page", (message, hint, words) => {
  expect(problemWords({ message, ...(hint && { hint }) }, GRAPH)).toBe(words);
});

test("a hint that a button follows is not said", () => {
  const suggestion = { label: "Use type text", operations: [] };
  expect(
    problemWords({ message: "no type 'txet'", hint: "did you mean text?", suggestion }, GRAPH),
  ).toBe("no type 'txet'");
});

import { expect, test } from "vitest";
import { forkChange } from "./forkChange";

test.each([
  ["rerun", { rerun: ["note"] }],
  ["settings", { changes: { note: { description: "Do it.", data: { text: "new" } } } }],
  ["output", { changes: { note: { outputs: { output: "given" } } } }],
] as const)("a fork by %s changes one step", (kind, body) => {
  const before = { task: "", data: { text: "old" } };
  const after = { task: "Do it.", data: { text: "new" } };
  expect(forkChange(kind, "note", { before, after, output: "given" })).toEqual(body);
});

test("an unchanged task is not sent", () => {
  const before = { task: "Do it.", data: {} };
  const after = { task: "Do it.", data: { text: "new" } };
  expect(forkChange("settings", "note", { before, after, output: "" })).toEqual({
    changes: { note: { data: { text: "new" } } },
  });
});

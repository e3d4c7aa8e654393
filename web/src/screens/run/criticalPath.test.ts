import { expect, test } from "vitest";
import { criticalPath } from "./criticalPath";

const step = (id: string, startedAt: number, endedAt: number) => ({ id, startedAt, endedAt });

test("the longest path leads from the last step over the parents that ended last", () => {
  const path = criticalPath(
    [step("a", 0, 2), step("b", 2, 9), step("c", 2, 4), step("d", 9, 12), step("e", 0, 11)],
    [
      { source: "a", target: "b" },
      { source: "a", target: "c" },
      { source: "b", target: "d" },
      { source: "c", target: "d" },
    ],
  );
  expect([...path]).toEqual(["d", "b", "a"]);
});

test("nothing that ran has no longest path", () => {
  expect(criticalPath([], [{ source: "a", target: "b" }]).size).toBe(0);
});

test("steps that wait for each other do not go round for ever", () => {
  const path = criticalPath(
    [step("a", 0, 1), step("b", 0, 2)],
    [
      { source: "a", target: "b" },
      { source: "b", target: "a" },
    ],
  );
  expect(path).toEqual(new Set(["b", "a"]));
});

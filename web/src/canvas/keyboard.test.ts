import { expect, test } from "vitest";
import { stepAfterKey } from "./keyboard";

const LANES = [
  { wave: 1, x: 0, ids: ["a", "b"] },
  { wave: 2, x: 344, ids: ["c", "d", "e"] },
];
const EDGES = [{ source: "b", target: "d" }];

test.each([
  ["ArrowRight", "b", "d"],
  ["ArrowLeft", "d", "b"],
  ["ArrowDown", "c", "d"],
  ["ArrowUp", "c", null],
  ["ArrowRight", "a", "c"],
  ["ArrowLeft", "e", "b"],
  ["ArrowRight", "e", null],
  ["ArrowDown", null, "a"],
  ["ArrowDown", "gone", "a"],
  ["x", "a", null],
])("%s from %s leads to %s", (key, selected, expected) => {
  expect(stepAfterKey(key, selected, LANES, EDGES)).toBe(expected);
});

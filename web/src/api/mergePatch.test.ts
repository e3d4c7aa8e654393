import { expect, test } from "vitest";
import { applyMergePatch, mergePatch } from "./mergePatch";

test("a merge patch has only what differs, and null for what is gone", () => {
  const before = { same: 1, gone: 2, list: [1], inner: { a: 1, b: 2 } };
  const after = { same: 1, list: [1, 2], inner: { a: 1, b: 3 }, made: "x" };
  const patch = mergePatch(before, after);
  expect(patch).toEqual({ gone: null, list: [1, 2], inner: { b: 3 }, made: "x" });
  expect(applyMergePatch(before, patch)).toEqual(after);
});

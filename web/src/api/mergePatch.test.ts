import { expect, test } from "vitest";
import { readJson, writeJson } from "@/json";
import { applyMergePatch, mergePatch } from "./mergePatch";

test("a merge patch has only what differs, and null for what is gone", () => {
  const before = { same: 1, gone: 2, list: [1], inner: { a: 1, b: 2 } };
  const after = { same: 1, list: [1, 2], inner: { a: 1, b: 3 }, made: "x" };
  const patch = mergePatch(before, after);
  expect(patch).toEqual({ gone: null, list: [1, 2], inner: { b: 3 }, made: "x" });
  expect(applyMergePatch(before, patch)).toEqual(after);
});

test("numbers that JavaScript would change are compared and sent as they are written", () => {
  const before = readJson(
    '{"id": 9007199254740993, "list": [1.0, 2], "same": 10000000000000000000}',
  );
  const after = readJson('{"id": 9007199254740992, "list": [1, 2], "same": 10000000000000000000}');
  expect(writeJson(mergePatch(before, after))).toBe('{"id":9007199254740992,"list":[1,2]}');
  expect(writeJson(applyMergePatch(after, mergePatch(after, before)))).toBe(writeJson(before));
});

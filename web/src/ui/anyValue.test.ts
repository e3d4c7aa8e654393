import { expect, test } from "vitest";
import { readJson } from "@/json";
import { readAny, writeAny } from "./anyValue";

test.each([
  ["red", "red"],
  ["two words", "two words"],
  ["5", 5],
  ['"5"', "5"],
  ["true", true],
  ['{"a": [1]}', { a: [1] }],
  ["{{ input }}", "{{ input }}"],
  ["", undefined],
])("%s is read as %j", (text, value) => expect(readAny(text)).toEqual({ value }));

test.each(['{"a": ', "[1,", '"open'])("%s is not finished", (text) => {
  expect(readAny(text)).toHaveProperty("problem");
});

test.each(["red", "5", "true", "null", " ", '"', "{x", "{{ input }}", "a\nb", '"q"'])(
  "the text %j is read again as itself",
  (text) => expect(readAny(writeAny(text))).toEqual({ value: text }),
);

test("numbers keep their digits", () => {
  const value = readJson("[1.0, 12345678901234567890]");
  expect(writeAny(value).replaceAll(/\s/g, "")).toBe("[1.0,12345678901234567890]");
});

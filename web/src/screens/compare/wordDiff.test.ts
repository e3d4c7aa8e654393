import fc from "fast-check";
import { expect, test } from "vitest";
import { diffWords, sharedPart } from "@/screens/compare/wordDiff";

function words(text: string): string[] {
  return text.split(/\s+/).filter(Boolean);
}

test("what is removed stands before what is added, with the same words around it", () => {
  expect(diffWords("CSV files are simple.", "CSV files keep no types.")).toEqual([
    { kind: "same", text: "CSV files " },
    { kind: "removed", text: "are simple." },
    { kind: "added", text: "keep no types." },
  ]);
});

test("another white space is no change; the one of B is shown", () => {
  expect(diffWords("one two\nthree", "one\n\ntwo three")).toEqual([
    { kind: "same", text: "one\n\ntwo three" },
  ]);
});

test("a text against none is all added or all removed", () => {
  expect(diffWords("", "new words")).toEqual([{ kind: "added", text: "new words" }]);
  expect(diffWords("old words", "")).toEqual([{ kind: "removed", text: "old words" }]);
  expect(diffWords("", "")).toEqual([]);
});

const TEXT = fc
  .array(fc.constantFrom("a", "b", "c", " ", "\n", "  "), { maxLength: 40 })
  .map((pieces) => pieces.join(" "));

test("same and added are B; the words of same and removed are those of A", () => {
  fc.assert(
    fc.property(TEXT, TEXT, (a, b) => {
      const parts = diffWords(a, b);
      const without = (left: string) => parts.filter(({ kind }) => kind !== left);
      const texts = (left: string) => without(left).map(({ text }) => text);
      expect(texts("removed").join("")).toBe(b);
      expect(words(texts("added").join(" "))).toEqual(words(a));
    }),
  );
});

test("no longer common sequence exists than the one that is found", () => {
  const parts = diffWords("a b c d e f", "b x d f a");
  expect(parts.filter(({ kind }) => kind === "same").map(({ text }) => text.trim())).toEqual([
    "b",
    "d",
    "f",
  ]);
});

const LINES = Array.from({ length: 1500 }, (_, n) => `line ${n} of a long text that goes on`);

test("long texts are compared word by word, in time", () => {
  const changed = LINES.with(700, "line 700 of another text that goes on");
  const parts = diffWords(["x", ...LINES].join("\n"), [...changed, "y"].join("\n"));
  expect(parts.filter(({ kind }) => kind !== "same")).toEqual([
    { kind: "removed", text: "x\n" },
    { kind: "removed", text: "a long " },
    { kind: "added", text: "another " },
    { kind: "added", text: "y" },
  ]);
});

test("texts that differ in very many words are compared line by line, else as a whole", () => {
  const some = LINES.slice(0, 900);
  const rest = some.map((_, n) => `all the ${n} others say nothing about it at all`);
  const parts = diffWords([...some, "the end"].join("\n"), [...rest, "the end"].join("\n"));
  expect(parts.map(({ kind }) => kind)).toEqual(["removed", "added", "same"]);
  expect(parts.at(-1)?.text).toBe("the end");
  const [many, others] = ["a", "b"].map((letter) =>
    Array.from({ length: 3000 }, (_, n) => `${letter}${n}`).join("\n"),
  );
  expect(diffWords(many ?? "", others ?? "").map(({ kind }) => kind)).toEqual(["removed", "added"]);
});

test("the shared part is that of the letters of both texts", () => {
  expect(sharedPart(diffWords("same words", "same words"))).toBe(1);
  expect(sharedPart(diffWords("abcd xxxx", "abcd yyyy"))).toBe(0.5);
  expect(sharedPart(diffWords("a", "b"))).toBe(0);
  expect(sharedPart([])).toBe(1);
});

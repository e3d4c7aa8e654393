import { expect, test } from "vitest";
import { withMathMarks } from "@/ui/mathMarks";

test.each([
  ["the area is $\\pi r^2$.", "the area is $$\\pi r^2$$."],
  ["with \\(a + b\\) inside", "with $$a + b$$ inside"],
  ["before\n\\[a\\,b\\]\nafter", "before\n$$\na\\,b\n$$\nafter"],
  ["$$\na\n$$", "$$\na\n$$"],
  ["$$a$$ stays", "$$a$$ stays"],
])("%j has marks that are rendered", (text, marked) => {
  expect(withMathMarks(text)).toBe(marked);
});

test.each([
  "from $5 to $10, or $ 7 and 8 $",
  "US$5 and US$6",
  "as \\[1\\] says",
  "a price of \\$5 and \\$6",
  "`$a$` and ``\\(b\\)`` are code",
  "```tex\n$a$\n\\[b\\]\n```\nend",
  "~~~\n$a$\n~~~",
  "```\n$a$ in a fence that is still being written",
])("%j is left as it is", (text) => {
  expect(withMathMarks(text)).toBe(text);
});

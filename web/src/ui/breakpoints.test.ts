import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { BREAKPOINTS, withWidths } from "./breakpoints";

/** A width of the screen as a media rule writes it, or as a script asks for it. */
const LITERAL = {
  css: /@media[^{]*\b(width|inline-size|aspect-ratio)\b[^{]*/g,
  ts: /\((min|max)-(width|inline-size):|\b(innerWidth|outerWidth|screen\.width)\b/g,
};

function sources(kind: RegExp): [file: string, text: string][] {
  return readdirSync("src", { recursive: true, encoding: "utf8" })
    .filter((file) => kind.test(file) && !/breakpoints(\.test)?\.ts$/.test(file))
    .map((file) => [file, readFileSync(`src/${file}`, "utf8")]);
}

test("no style sheet and no script writes a width of the screen", () => {
  const written = (kind: RegExp, literal: RegExp) =>
    sources(kind).flatMap(([file, text]) =>
      [...text.matchAll(literal)].map(([found]) => `${file}: ${found}`),
    );
  expect(written(/\.css$/, LITERAL.css)).toEqual([]);
  expect(written(/\.tsx?$/, LITERAL.ts)).toEqual([]);
});

test("every breakpoint that a style sheet names is there, and every one is named", () => {
  const rules = sources(/\.css$/).flatMap(([, text]) => text.match(/@media[^{]*/g) ?? []);
  for (const rule of rules) withWidths(rule);
  for (const name of Object.keys(BREAKPOINTS)) expect(rules.join()).toContain(`(--${name})`);
});

test("a breakpoint is named alone, negated, and beside other conditions", () => {
  expect(withWidths("(--phone)")).toBe(BREAKPOINTS.phone);
  expect(withWidths("(not (--narrow)) and (min-height: 641px)")).toBe(
    `(not ${BREAKPOINTS.narrow}) and (min-height: 641px)`,
  );
  expect(withWidths("(hover: none)")).toBe("(hover: none)");
  expect(() => withWidths("(--desk)")).toThrow("--desk is no breakpoint: phone, narrow are");
});

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { ExactNumber, isObject, numberOf, readJson, readNumber, writeJson } from "./json";

/** A JSON text of numbers as they are written, which JavaScript may know in other digits. */
const number = fc
  .tuple(
    fc.constantFrom("", "-"),
    fc.oneof(
      fc.bigInt({ min: 0n, max: 10n ** 60n }).map(String),
      fc.constantFrom("0", "1", "18446744073709551615", "9007199254740993", "3544790567247868102"),
    ),
    fc.constantFrom("", ".0", ".5", ".10", ".30000000000000004"),
    fc.constantFrom("", "e400", "E-3", "e+5"),
  )
  .map((parts) => parts.join(""));
const text = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.constantFrom('"1.0"', "\\", "\\u0000 1.0", "1e400", "__proto__", "\u2028"),
);
const { json } = fc.letrec<{ json: string }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 4 },
    number,
    text.map((each) => JSON.stringify(each)),
    fc.constantFrom("true", "false", "null"),
    fc.array(tie("json"), { maxLength: 4 }).map((items) => `[${items.join(",")}]`),
    fc
      .uniqueArray(fc.tuple(text, tie("json")), { selector: ([key]) => key, maxLength: 4 })
      .map((fields) => fields.filter(([key]) => !/^\d+$/.test(key)))
      .map((fields) => `{${fields.map(([k, v]) => `${JSON.stringify(k)}:${v}`).join(",")}}`),
  ),
}));

test("JSON is written in the digits that it was read in", () => {
  fc.assert(
    fc.property(json, (written) => {
      expect(writeJson(readJson(written))).toBe(written);
      expect(writeJson(readJson(writeJson(readJson(written), 2)))).toBe(written);
    }),
  );
});

test.each(["", "01", "1.", "1.0.0", "-", "--1.0", "1.0 2", "{1.0:2}", "[1.0", "1e", "nul", "'a'"])(
  "%j is no JSON",
  (broken) => {
    expect(() => readJson(broken)).toThrow(SyntaxError);
  },
);

test("a number that JavaScript prints alike is a number, any other keeps its text", () => {
  expect(readJson("[1, -2.5, 1e21, 0.1]")).toEqual([1, -2.5, new ExactNumber("1e21"), 0.1]);
  for (const digits of ["1.0", "-0", "-0.0", "1e400", "9007199254740993"]) {
    const value = readJson(digits);
    expect(String(value)).toBe(digits);
    expect(numberOf(value)).toBe(Number(digits));
    expect(isObject(value)).toBe(false);
  }
});

test("what a person writes into a field for numbers keeps its digits", () => {
  const read = ["3544790567247868102", "1.0", " 7 ", ".5", "x", "", '"1"', "Infinity"];
  expect(read.map((each) => writeJson(readNumber(each)))).toEqual([
    "3544790567247868102",
    "1.0",
    "7",
    "0.5",
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});

test("nothing else in the page reads or writes JSON", () => {
  /** Servers of tests, which are no part of the page. */
  const others = ["stream/goldenRuns.ts", "stream/runServer.ts", "testApi.tsx"];
  const source = join(import.meta.dirname, ".");
  const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter(
    (name) => /\.tsx?$/.test(name) && !/\.test\./.test(name) && !others.includes(name),
  );
  const found = files.filter((name) =>
    /JSON\s*\.\s*(parse|stringify)|\.json\(\)|structuredClone/.test(
      readFileSync(join(source, name), "utf8"),
    ),
  );
  expect(files.length).toBeGreaterThan(100);
  expect(found).toEqual(["json.ts"]);
});

import { expect, test } from "vitest";
import {
  boundsText,
  itemField,
  type JsonSchema,
  schemaDetails,
  schemaFields,
  schemaText,
} from "./schema";

const ORDER: JsonSchema = {
  type: "object",
  properties: {
    sku: { type: "string" },
    count: { type: "integer", minimum: 1, maximum: 9 },
    level: { $ref: "#/$defs/Level" },
    parts: { type: "array", items: { $ref: "#/$defs/Order" } },
  },
  required: ["sku"],
};

const SCHEMA: JsonSchema = {
  type: "object",
  $defs: {
    Tools: { type: "object", properties: {} },
    Level: { enum: ["low", "high"] },
    Order: ORDER,
  },
  properties: {
    userPrompt: {
      anyOf: [{ type: "string" }, { type: "null" }],
      title: "Userprompt",
      template: true,
    },
    maxTokens: { anyOf: [{ type: "integer", minimum: 1 }, { type: "null" }], default: null },
    level: { $ref: "#/$defs/Level", description: "How much." },
    tools: { $ref: "#/$defs/Tools" },
    name: { type: "string", title: "Who it is" },
    either: { oneOf: [{ type: "string" }, { type: "array" }] },
    price: { anyOf: [{ type: "number" }, { type: "string" }] },
    day: { anyOf: [{ type: "string", format: "date" }, { type: "null" }] },
    levels: { type: "array", items: { $ref: "#/$defs/Level" } },
    order: { $ref: "#/$defs/Order" },
    grid: { type: "array", items: { type: "array", items: { type: "integer" } } },
    amounts: { type: "object", additionalProperties: { type: "integer" } },
  },
  required: ["name"],
};

const byName = Object.fromEntries(schemaFields(SCHEMA).map((field) => [field.name, field]));

test.each([
  ["userPrompt", "longText", "User prompt"],
  ["maxTokens", "integer", "Max tokens"],
  ["level", "choice", "Level"],
  ["tools", "json", "Tools"],
  ["name", "text", "Who it is"],
  ["either", "json", "Either"],
  ["price", "text", "Price"],
  ["day", "date", "Day"],
  ["levels", "list", "Levels"],
  ["order", "object", "Order"],
  ["grid", "json", "Grid"],
  ["amounts", "map", "Amounts"],
])("%s is edited as %s and called %s", (name, kind, label) => {
  expect(byName[name]).toMatchObject({ kind, label });
});

test("required fields come first", () => {
  expect(schemaFields(SCHEMA)[0]?.name).toBe("name");
});

test("what a field may hold is known", () => {
  expect(byName.userPrompt).toMatchObject({ nullable: true, isTemplate: true });
  expect(byName.maxTokens).toMatchObject({ minimum: 1, nullable: true });
  expect(byName.level).toMatchObject({ choices: ["low", "high"], description: "How much." });
});

test("a schema without properties has no fields", () => {
  expect(schemaFields({ type: "object" })).toEqual([]);
});

test("a value of a list is a field, with what the definitions say of it", () => {
  const { levels } = byName;
  if (!levels) throw new Error("no field");
  expect(itemField(levels, 1)).toMatchObject({
    kind: "choice",
    label: "Levels 2",
    choices: ["low", "high"],
  });
});

test("what a value is reads as a line, also where a type refers to itself", () => {
  const level = '"low" or "high"';
  const order = `{sku: text, count?: integer 1 to 9, level?: ${level}, parts?: list of {…}}`;
  expect(schemaText({ ...ORDER, $defs: { Order: ORDER, Level: { enum: ["low", "high"] } } })).toBe(
    `{sku: text, count?: integer 1 to 9, level?: ${level}, parts?: list of ${order}}`,
  );
  expect(schemaText({ type: "array", items: { type: "string", format: "date" } })).toBe(
    "list of date",
  );
  expect(schemaText(undefined)).toBe("");
  expect([boundsText({ minimum: 1 }), boundsText({ maximum: 2 }), boundsText({})]).toEqual([
    "at least 1",
    "at most 2",
    "",
  ]);
});

test("a type alone is no detail of a value", () => {
  expect(schemaDetails({ type: "array" })).toBe("");
  expect(schemaDetails({ type: "string" })).toBe("");
  expect(schemaDetails(undefined)).toBe("");
  expect(schemaDetails({ type: "array", items: { type: "string" } })).toBe("list of text");
});

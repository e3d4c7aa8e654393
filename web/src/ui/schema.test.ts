import { expect, test } from "vitest";
import { type JsonSchema, schemaFields } from "./schema";

const SCHEMA: JsonSchema = {
  type: "object",
  $defs: { Tools: { type: "object", properties: {} }, Level: { enum: ["low", "high"] } },
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

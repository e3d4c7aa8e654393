import { writeJson } from "@/json";

/** Reads JSON Schemas as far as a form needs them. */
export type JsonSchema = {
  $ref?: string;
  $defs?: Record<string, JsonSchema>;
  type?: string | string[];
  title?: string;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  const?: unknown;
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  allOf?: JsonSchema[];
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema;
  additionalProperties?: JsonSchema | boolean;
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  format?: string;
  /** planwave: the text may hold expressions. */
  template?: boolean;
  [keyword: string]: unknown;
};

export type FieldKind =
  | "text"
  | "longText"
  | "date"
  | "number"
  | "integer"
  | "boolean"
  | "choice"
  | "object"
  | "list"
  /** An object whose fields have any names. */
  | "map"
  /** Any single value, or one of several types. */
  | "any"
  | "json";

export type SchemaField = {
  name: string;
  label: string;
  kind: FieldKind;
  description: string;
  required: boolean;
  /** Null is a value: the field may be left empty. */
  nullable: boolean;
  default: unknown;
  choices: unknown[];
  minimum?: number | undefined;
  maximum?: number | undefined;
  isTemplate: boolean;
  /** Of its value, with the definitions that it refers to. */
  schema: JsonSchema;
};

/** Texts whose names end so are edited in several lines. */
const LONG_TEXT =
  /(prompt|text|task|note|description|content|template|expression|message|body|question)$/i;

/** Returns the fields of an object schema, required ones first. */
export function schemaFields(schema: JsonSchema): SchemaField[] {
  const root = resolve(schema, schema);
  const required = new Set(root.required ?? []);
  const fields = Object.entries(root.properties ?? {}).map(([name, property]) =>
    schemaField(name, property, schema, required.has(name)),
  );
  return [
    ...fields.filter((field) => field.required),
    ...fields.filter((field) => !field.required),
  ];
}

/** Returns one of the values of a list as a field. */
export function itemField(list: SchemaField, index: number): SchemaField {
  const item = schemaField(list.name, list.schema.items ?? {}, list.schema, true);
  return { ...item, name: String(index), label: `${list.label} ${index + 1}` };
}

/** Returns one of the values of an object whose fields have any names as a field. */
export function entryField(map: SchemaField, name: string, index: number): SchemaField {
  const value = schemaOfEntries(map.schema) ?? {};
  const entry = schemaField(map.name, value, map.schema, true);
  return { ...entry, name, label: `Value ${index + 1}` };
}

/** Returns what a value is: "list of {sku: text, count?: integer 1 to 9}"; "" without a schema. */
export function schemaText(schema: JsonSchema | undefined): string {
  return schema ? textOf(schema, schema, DEEPEST) : "";
}

/** Returns what a value is where that is more than its type, which a socket says too: not "list" or "text". */
export function schemaDetails(schema: JsonSchema | undefined): string {
  const text = schemaText(schema);
  return /\W/.test(text) ? text : "";
}

/** Objects inside objects that are written out. */
const DEEPEST = 2;

function textOf(part: JsonSchema, root: JsonSchema, depth: number): string {
  const schema = resolve(part, root);
  const values = schema.const !== undefined ? [schema.const] : schema.enum;
  if (values) return values.map((value) => writeJson(value)).join(" or ");
  const variants = schema.anyOf ?? schema.oneOf;
  if (variants) return variants.map((each) => textOf(each, root, depth)).join(" or ");
  const types = asList(schema.type).map((type) => {
    if (type === "object") return objectText(schema, root, depth);
    if (type === "array") {
      return schema.items ? `list of ${textOf(schema.items, root, depth)}` : "list";
    }
    if (type === "string") return schema.format ?? "text";
    return [type, boundsText(schema)].filter(Boolean).join(" ");
  });
  return types.join(" or ") || "any";
}

function objectText(schema: JsonSchema, root: JsonSchema, depth: number): string {
  const properties = Object.entries(schema.properties ?? {});
  if (properties.length === 0) return "object";
  if (depth === 0) return "{…}";
  const required = new Set(schema.required ?? []);
  const fields = properties.map(
    ([name, each]) => `${name}${required.has(name) ? "" : "?"}: ${textOf(each, root, depth - 1)}`,
  );
  return `{${fields.join(", ")}}`;
}

/** Returns "1 to 9", "at least 1", "at most 9", "" without bounds. */
export function boundsText({ minimum, maximum }: Pick<JsonSchema, "minimum" | "maximum">): string {
  if (minimum === undefined) return maximum === undefined ? "" : `at most ${maximum}`;
  return maximum === undefined ? `at least ${minimum}` : `${minimum} to ${maximum}`;
}

function schemaField(name: string, property: JsonSchema, root: JsonSchema, required: boolean) {
  const variants = (property.anyOf ?? property.oneOf ?? [property]).map((each) =>
    resolve(each, root),
  );
  const nullable = variants.some(isNull) || asList(property.type).includes("null");
  const others = variants.filter((each) => !isNull(each) && !isExpression(each));
  const only = others.length === 1 ? others[0] : decimalOf(others);
  const kind = only ? kindOf(name, only, root) : others.every(isPlain) ? "any" : "json";
  const mayBeExpression = variants.some(isExpression);
  return {
    name,
    label: labelOf(name, property.title),
    kind: mayBeExpression && !HOLDERS.has(kind) ? "any" : kind,
    description: property.description ?? only?.description ?? "",
    required,
    nullable,
    default: property.default,
    choices: only?.const !== undefined ? [only.const] : (only?.enum ?? []),
    minimum: only?.minimum,
    maximum: only?.maximum,
    isTemplate: property.template === true,
    schema: { ...only, $defs: root.$defs ?? {} },
  } satisfies SchemaField;
}

/** Kinds with controls inside; an expression in the place of such a value is shown as it is. */
const HOLDERS: ReadonlySet<FieldKind> = new Set(["object", "list", "map", "json"]);

/** Whether a variant is that of a text in the place of another value: one with `{{` or `{%`. */
function isExpression({ type, pattern }: JsonSchema): boolean {
  return type === "string" && pattern === "\\{[{%]";
}

/** Returns the text of a number that is also taken as text, so that no digit is lost. */
function decimalOf(variants: JsonSchema[]): JsonSchema | undefined {
  const types = variants.map(({ type }) => type);
  const isDecimal = types.length === 2 && types.includes("number") && types.includes("string");
  return isDecimal ? { type: "string" } : undefined;
}

function resolve(schema: JsonSchema, root: JsonSchema): JsonSchema {
  const name = schema.$ref?.match(/^#\/\$defs\/(.+)$/)?.[1];
  if (!name) return schema;
  const { $ref: _, ...own } = schema;
  return { ...resolve(root.$defs?.[name] ?? {}, root), ...own };
}

function isNull(schema: JsonSchema): boolean {
  return schema.type === "null";
}

function asList(type: string | string[] | undefined): string[] {
  return typeof type === "string" ? [type] : (type ?? []);
}

function kindOf(name: string, schema: JsonSchema, root: JsonSchema): FieldKind {
  if (schema.enum || schema.const !== undefined) return "choice";
  const [type = "any", ...others] = asList(schema.type).filter((each) => each !== "null");
  if (others.length > 0) return "json";
  switch (type) {
    case "object":
      if (Object.keys(schema.properties ?? {}).length > 0) return "object";
      return hasEntries(schema, root) ? "map" : "json";
    case "array":
      return hasRows(schema, root) ? "list" : "json";
    case "string":
      return textKind(name, schema);
    case "number":
    case "integer":
    case "boolean":
      return type;
    default:
      return schema.anyOf ? "json" : "any";
  }
}

function textKind(name: string, { format }: JsonSchema): FieldKind {
  if (format === "date") return "date";
  return LONG_TEXT.test(name) || format === "textarea" ? "longText" : "text";
}

function schemaOfEntries({ additionalProperties }: JsonSchema): JsonSchema | null {
  return typeof additionalProperties === "object" ? additionalProperties : null;
}

/** Returns whether each value of an object has a control of its own: texts and numbers, not any JSON. */
function hasEntries(schema: JsonSchema, root: JsonSchema): boolean {
  const value = schemaOfEntries(schema);
  if (value === null) return false;
  const variants = (value.anyOf ?? value.oneOf ?? [value]).map((each) => resolve(each, root));
  return variants.length > 0 && variants.every(isPlain);
}

/** Whether a schema is of a text, a number, a truth value, or a list of these. */
function isPlain({ type, items }: JsonSchema): boolean {
  if (type === "array") return items !== undefined && (items.anyOf ?? [items]).every(isPlain);
  return typeof type === "string" && type !== "object";
}

/** Returns whether each value of a list has a control of its own; lists of lists have not. */
function hasRows({ items }: JsonSchema, root: JsonSchema): boolean {
  if (!items || resolve(items, root).type === "array") return false;
  return schemaField("item", items, root, true).kind !== "json";
}

/** "maxTokens" is "Max tokens". A title that only repeats the name is not used. */
export function labelOf(name: string, title: string | undefined): string {
  const bare = (text: string) => text.replace(/[\s_-]/g, "").toLowerCase();
  if (title && bare(title) !== bare(name)) return title;
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/[_-]+/g, " ")
    .toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

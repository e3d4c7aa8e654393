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
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  format?: string;
  /** planwave: the text may hold expressions. */
  template?: boolean;
  [keyword: string]: unknown;
};

export type FieldKind = "text" | "longText" | "number" | "integer" | "boolean" | "choice" | "json";

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

/** Returns the fields of an object or of the objects of a list: ` {sku, count}`; else nothing. */
export function fieldsText(schema: JsonSchema | undefined): string {
  if (!schema) return "";
  const root = resolve(schema, schema);
  const part = root.items ? { ...root.items, $defs: schema.$defs } : root;
  const names = schemaFields(part).map((field) => field.name);
  return names.length > 0 ? ` {${names.join(", ")}}` : "";
}

function schemaField(name: string, property: JsonSchema, root: JsonSchema, required: boolean) {
  const variants = (property.anyOf ?? property.oneOf ?? [property]).map((each) =>
    resolve(each, root),
  );
  const nullable = variants.some(isNull) || asList(property.type).includes("null");
  const others = variants.filter((each) => !isNull(each));
  const only = others.length === 1 ? others[0] : undefined;
  return {
    name,
    label: labelOf(name, property.title),
    kind: only ? kindOf(name, only) : "json",
    description: property.description ?? only?.description ?? "",
    required,
    nullable,
    default: property.default,
    choices: only?.const !== undefined ? [only.const] : (only?.enum ?? []),
    minimum: only?.minimum,
    maximum: only?.maximum,
    isTemplate: property.template === true,
  } satisfies SchemaField;
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

function kindOf(name: string, schema: JsonSchema): FieldKind {
  if (schema.enum || schema.const !== undefined) return "choice";
  const types = asList(schema.type).filter((type) => type !== "null");
  switch (types.length === 1 ? types[0] : "any") {
    case "string":
      return LONG_TEXT.test(name) || schema.format === "textarea" ? "longText" : "text";
    case "number":
      return "number";
    case "integer":
      return "integer";
    case "boolean":
      return "boolean";
    default:
      return "json";
  }
}

/** "maxTokens" is "Max tokens". A title that only repeats the name is not used. */
function labelOf(name: string, title: string | undefined): string {
  const bare = (text: string) => text.replace(/[\s_-]/g, "").toLowerCase();
  if (title && bare(title) !== bare(name)) return title;
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/[_-]+/g, " ")
    .toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

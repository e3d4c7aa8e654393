import { type ReactNode, useEffect, useState } from "react";
import { readJson, readNumber, writeJson } from "@/json";
import { readAny, writeAny } from "@/ui/anyValue";
import { SelectField, TextArea, TextField } from "@/ui/Field";
import styles from "@/ui/SchemaForm.module.css";
import { Switch } from "@/ui/Switch";
import { boundsText, type FieldKind, type SchemaField } from "@/ui/schema";

export type FormValue = Readonly<Record<string, unknown>>;

export type Control = (props: FieldProps) => ReactNode;
export type Controls = Readonly<Record<string, Control>>;

export type Errors = Readonly<Record<string, string>>;

export type FieldProps = {
  field: SchemaField;
  value: unknown;
  /** `undefined` takes the field out. */
  onChange: (value: unknown) => void;
  /** `inside`: the path of what is broken in it. */
  onBroken?: ((isBroken: boolean, inside?: string) => void) | undefined;
  error: string | undefined;
  /** What is wrong inside it, by path. */
  errors?: Errors;
  tag: ReactNode;
  /** The values of all fields of its form. */
  siblings?: FormValue;
  /** Other controls than those of the schema for fields inside it. */
  controls?: Controls;
};

/** The controls of values without parts. */
export const VALUE_CONTROLS: Record<Exclude<FieldKind, "object" | "list" | "map">, Control> = {
  text: ({ field, value, onChange, error, tag }) => (
    <TextField
      {...fieldLook(field, error, tag)}
      value={asText(value)}
      placeholder={asText(field.default)}
      onChange={(event) => onChange(event.target.value || undefined)}
    />
  ),
  longText: ({ field, value, onChange, error, tag }) => (
    <TextArea
      {...fieldLook(field, error, tag)}
      value={asText(value)}
      placeholder={asText(field.default)}
      onChange={(event) => onChange(event.target.value || undefined)}
    />
  ),
  date: ({ field, value, onChange, error, tag }) => (
    <TextField
      {...fieldLook(field, error, tag)}
      type="date"
      value={asText(value)}
      onChange={(event) => onChange(event.target.value || undefined)}
    />
  ),
  number: NumberControl,
  integer: NumberControl,
  boolean: ({ field, value, onChange }) => (
    <Switch
      label={field.label}
      checked={(value ?? field.default) === true}
      onChange={(checked) => onChange(checked)}
    />
  ),
  choice: ({ field, value, onChange, error, tag }) => (
    <SelectField
      {...fieldLook(field, error, tag)}
      value={writeJson(value ?? null)}
      onChange={(event) => onChange(readJson(event.target.value) ?? undefined)}
    >
      {(!field.required || value === undefined) && (
        <option value="null">{emptyChoice(field)}</option>
      )}
      {field.choices.map((choice) => (
        <option key={writeJson(choice)} value={writeJson(choice)}>
          {asText(choice)}
        </option>
      ))}
    </SelectField>
  ),
  any: AnyControl,
  json: JsonControl,
};

function NumberControl({ field, value, onChange, onBroken, error, tag }: FieldProps) {
  const [text, setText] = useState(asText(value));
  useEffect(() => {
    setText((current) =>
      writeJson(readNumber(current)) === writeJson(value) ? current : asText(value),
    );
  }, [value]);
  const problem =
    text !== "" && readNumber(text) === undefined ? `"${text}" is not a number.` : error;
  return (
    <TextField
      {...fieldLook(field, problem, tag)}
      inputMode={field.kind === "integer" ? "numeric" : "decimal"}
      value={text}
      placeholder={asText(field.default)}
      onChange={(event) => {
        setText(event.target.value);
        const number = readNumber(event.target.value);
        const isEmpty = event.target.value.trim() === "";
        onBroken?.(!isEmpty && number === undefined);
        if (isEmpty || number !== undefined) onChange(number);
      }}
    />
  );
}

/** Any value: a text as it is, all else as JSON. */
function AnyControl({ field, value, onChange, onBroken, error, tag }: FieldProps) {
  const [text, setText] = useState(() => writeAny(value));
  useEffect(() => {
    setText((current) => (isTyped(current, value) ? current : writeAny(value)));
  }, [value]);
  const read = readAny(text);
  return (
    <TextArea
      {...fieldLook(field, "problem" in read ? read.problem : error, tag)}
      className={styles.any}
      rows={1}
      spellCheck={false}
      value={text}
      placeholder={writeAny(field.default)}
      onChange={(event) => {
        setText(event.target.value);
        const next = readAny(event.target.value);
        onBroken?.("problem" in next);
        if ("value" in next) onChange(next.value);
      }}
    />
  );
}

function isTyped(text: string, value: unknown): boolean {
  const read = readAny(text);
  return "problem" in read || writeJson(read.value ?? null) === writeJson(value ?? null);
}

function JsonControl({ field, value, onChange, onBroken, error, tag }: FieldProps) {
  const [text, setText] = useState(() => asJson(value));
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    setText((current) => (sameJson(current, value) ? current : asJson(value)));
    setProblem(undefined);
  }, [value]);
  const read = (next: string) => {
    setText(next);
    try {
      onChange(next.trim() === "" ? undefined : readJson(next));
      setProblem(undefined);
      onBroken?.(false);
    } catch (fault) {
      onBroken?.(true);
      setProblem(`This is not JSON: ${fault instanceof Error ? fault.message : fault}.`);
    }
  };
  return (
    <TextArea
      {...fieldLook(field, problem ?? error, tag)}
      className={styles.code}
      spellCheck={false}
      value={text}
      placeholder={asJson(field.default)}
      onChange={(event) => read(event.target.value)}
    />
  );
}

/** Returns the label of the control of a field, and what stands beside and below it. */
export function fieldLook(field: SchemaField, error: string | undefined, tag: ReactNode) {
  const bounds = boundsText(field);
  const about =
    field.description || (field.isTemplate ? "May hold expressions: {{ input }}." : bounds);
  const hint = about || undefined;
  return { label: field.label, hint, error, tag };
}

function emptyChoice(field: SchemaField): string {
  if (field.required) return "Choose one";
  return field.default === undefined || field.default === null
    ? "Not set"
    : `${asText(field.default)}, as usual`;
}

export function asText(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : writeJson(value);
}

function asJson(value: unknown): string {
  return value === undefined || value === null ? "" : writeJson(value, 2);
}

function sameJson(text: string, value: unknown): boolean {
  try {
    return writeJson(readJson(text)) === writeJson(value);
  } catch {
    return text.trim() !== "" && value === undefined;
  }
}

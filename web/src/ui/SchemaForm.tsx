import { type ReactNode, useEffect, useState } from "react";
import { readJson, readNumber, writeJson } from "@/json";
import { SelectField, TextArea, TextField } from "@/ui/Field";
import styles from "@/ui/SchemaForm.module.css";
import { Switch } from "@/ui/Switch";
import { type JsonSchema, type SchemaField, schemaFields } from "@/ui/schema";

export type FormValue = Readonly<Record<string, unknown>>;

type SchemaFormProps = {
  schema: JsonSchema;
  value: FormValue;
  /** Called with the whole new value; fields that were emptied are left out. */
  onChange: (value: FormValue) => void;
  /** Called when a field holds a text that is no value of it, which `onChange` does not get, and when it
   * holds one again. */
  onBroken?: (name: string, isBroken: boolean) => void;
  /** What is wrong, by field. */
  errors?: Readonly<Record<string, string>>;
  /** Beside the label of a field. */
  tag?: (field: SchemaField) => ReactNode;
  /** Fields that are edited elsewhere. */
  hidden?: ReadonlySet<string>;
  /** Other controls than those of the schema, by field. */
  controls?: Readonly<Record<string, (props: FieldProps) => ReactNode>>;
};

export type FieldProps = {
  field: SchemaField;
  value: unknown;
  /** `undefined` takes the field out. */
  onChange: (value: unknown) => void;
  onBroken?: ((isBroken: boolean) => void) | undefined;
  error: string | undefined;
  tag: ReactNode;
};

/** A form made from the JSON Schema of an object. */
export function SchemaForm(props: SchemaFormProps) {
  const { schema, value, onChange, onBroken, errors, tag, hidden, controls } = props;
  const change = (name: string, next: unknown) => {
    const { [name]: _, ...others } = value;
    onChange(next === undefined ? others : { ...value, [name]: next });
  };
  return (
    <div className={styles.form}>
      {schemaFields(schema)
        .filter((field) => !hidden?.has(field.name))
        .map((field) => {
          const Control = controls?.[field.name] ?? CONTROLS[field.kind];
          return (
            <Control
              key={field.name}
              field={field}
              value={value[field.name]}
              onChange={(next) => change(field.name, next)}
              onBroken={onBroken && ((isBroken) => onBroken(field.name, isBroken))}
              error={errors?.[field.name]}
              tag={
                tag?.(field) ??
                (field.required ? null : <span className={styles.optional}>optional</span>)
              }
            />
          );
        })}
    </div>
  );
}

const CONTROLS: Record<SchemaField["kind"], (props: FieldProps) => ReactNode> = {
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
  const hint =
    field.description || (field.isTemplate ? "May hold expressions: {{ input }}." : undefined);
  return { label: field.label, hint, error, tag };
}

function emptyChoice(field: SchemaField): string {
  if (field.required) return "Choose one";
  return field.default === undefined || field.default === null
    ? "Not set"
    : `${asText(field.default)}, as usual`;
}

function asText(value: unknown): string {
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

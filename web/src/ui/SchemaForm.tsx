import { type ReactNode, useEffect, useState } from "react";
import { isObject, readJson, readNumber, writeJson } from "@/json";
import { Button } from "@/ui/Button";
import { SelectField, TextArea, TextField } from "@/ui/Field";
import { IconButton } from "@/ui/IconButton";
import { Note } from "@/ui/Note";
import styles from "@/ui/SchemaForm.module.css";
import { Switch } from "@/ui/Switch";
import {
  boundsText,
  itemField,
  type JsonSchema,
  type SchemaField,
  schemaFields,
} from "@/ui/schema";

export type FormValue = Readonly<Record<string, unknown>>;

type SchemaFormProps = {
  schema: JsonSchema;
  value: FormValue;
  /** Called with the whole new value; fields that were emptied are left out. */
  onChange: (value: FormValue) => void;
  /** Called when a field holds a text that is no value of it, which `onChange` does not get, and when it
   * holds one again; `name` of one inside is a path. */
  onBroken?: ((name: string, isBroken: boolean) => void) | undefined;
  /** What is wrong, by field, of one inside by its path: `items/0/count`. */
  errors?: Errors | undefined;
  /** Beside the label of a field. */
  tag?: (field: SchemaField) => ReactNode;
  /** Fields that are edited elsewhere. */
  hidden?: ReadonlySet<string>;
  /** Other controls than those of the schema, by field. */
  controls?: Readonly<Record<string, (props: FieldProps) => ReactNode>>;
};

type Errors = Readonly<Record<string, string>>;

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
          const Control = controls?.[field.name] ?? controlOf(field, value[field.name]);
          return (
            <Control
              key={field.name}
              field={field}
              value={value[field.name]}
              onChange={(next) => change(field.name, next)}
              onBroken={
                onBroken && ((isBroken, inside) => onBroken(pathOf(field, inside), isBroken))
              }
              {...errorsOf(field, value[field.name], errors)}
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

/** Returns the control of a field; what its own control cannot show is edited as JSON. */
function controlOf(field: SchemaField, value: unknown): (props: FieldProps) => ReactNode {
  const isEmpty = value === undefined || value === null;
  const isStrange =
    (field.kind === "object" && !isObject(value)) ||
    (field.kind === "list" && !Array.isArray(value)) ||
    (field.kind === "date" && !/^\d{4}-\d\d-\d\d$/.test(asText(value)));
  if (isEmpty || !isStrange) return CONTROLS[field.kind];
  return CONTROLS[field.kind === "date" ? "text" : "json"];
}

function pathOf({ name }: SchemaField, inside: string | undefined): string {
  return inside === undefined ? name : `${name}/${inside}`;
}

/** Returns what is wrong with a field, and inside it where that has controls of its own. */
function errorsOf(field: SchemaField, value: unknown, errors: Errors = {}) {
  const start = `${field.name}/`;
  const inside = Object.entries(errors).filter(([path]) => path.startsWith(start));
  const control = controlOf(field, value);
  const isShownInside = control === ObjectControl || control === ListControl;
  return {
    error: errors[field.name] ?? (isShownInside ? undefined : inside[0]?.[1]),
    errors: Object.fromEntries(inside.map(([path, text]) => [path.slice(start.length), text])),
  };
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
  object: ObjectControl,
  list: ListControl,
  json: JsonControl,
};

/** The fields of an object inside; one that may be left out is there once it is added. */
function ObjectControl({ field, value, onChange, onBroken, error, errors, tag }: FieldProps) {
  const isThere = field.required || isObject(value);
  return (
    <fieldset className={styles.group}>
      <legend>
        {field.label} {tag}
      </legend>
      {error && <Note kind="error">{error}</Note>}
      {isThere && (
        <SchemaForm
          schema={field.schema}
          value={isObject(value) ? value : {}}
          errors={errors}
          onChange={onChange}
          onBroken={onBroken && ((path, isBroken) => onBroken(isBroken, path))}
        />
      )}
      {!field.required && (
        <Button
          small
          icon={isThere ? "trash" : "add"}
          onClick={() => {
            onChange(isThere ? undefined : isObject(field.default) ? field.default : {});
            onBroken?.(false);
          }}
        >
          {isThere ? "Remove" : "Add"} {field.label.toLowerCase()}
        </Button>
      )}
    </fieldset>
  );
}

/** The values of a list, one below the other. */
function ListControl({ field, value, onChange, onBroken, error, errors, tag }: FieldProps) {
  const usual = Array.isArray(field.default) ? field.default : [];
  const items: readonly unknown[] = Array.isArray(value) ? value : usual;
  return (
    <fieldset className={styles.group}>
      <legend>
        {field.label} {tag}
      </legend>
      {error && <Note kind="error">{error}</Note>}
      {items.map((item, index) => {
        const one = itemField(field, index);
        const Control = controlOf(one, item);
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: values of a list have nothing else
          <div key={index} className={styles.row}>
            <Control
              field={one}
              value={item}
              onChange={(next) => onChange(items.with(index, next ?? emptyItem(one)))}
              onBroken={onBroken && ((isBroken, inside) => onBroken(isBroken, pathOf(one, inside)))}
              {...errorsOf(one, item, errors)}
              tag={null}
            />
            <IconButton
              small
              icon="close"
              label={`Remove ${one.label.toLowerCase()}`}
              onClick={() => {
                onChange(items.toSpliced(index, 1));
                onBroken?.(false);
              }}
            />
          </div>
        );
      })}
      <Button
        small
        icon="add"
        onClick={() => onChange([...items, emptyItem(itemField(field, items.length))])}
      >
        Add to {field.label.toLowerCase()}
      </Button>
    </fieldset>
  );
}

/** Returns what stands in a list before something is entered. */
function emptyItem({ kind, choices }: SchemaField): unknown {
  if (kind === "object") return {};
  if (kind === "choice") return choices[0];
  if (kind === "boolean") return false;
  return kind === "text" || kind === "longText" ? "" : null;
}

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

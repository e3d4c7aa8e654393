import { type ReactNode, useEffect, useState } from "react";
import { isObject, writeJson } from "@/json";
import { Button } from "@/ui/Button";
import { TextField } from "@/ui/Field";
import { IconButton } from "@/ui/IconButton";
import { Note } from "@/ui/Note";
import styles from "@/ui/SchemaForm.module.css";
import {
  entryField,
  itemField,
  type JsonSchema,
  type SchemaField,
  schemaFields,
} from "@/ui/schema";
import {
  asText,
  type Control,
  type Controls,
  type Errors,
  type FieldProps,
  type FormValue,
  VALUE_CONTROLS,
} from "@/ui/valueControls";

export type { FormValue } from "@/ui/valueControls";

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
  controls?: Controls | undefined;
  /** The fields that are seen first, in this order, after those that are required; the others are folded. Without
   * it, all are seen. */
  usual?: readonly string[] | undefined;
};

/** A form made from the JSON Schema of an object. */
export function SchemaForm(props: SchemaFormProps) {
  const { schema, value, onChange, onBroken, errors, tag, hidden, controls, usual } = props;
  const change = (name: string, next: unknown) => {
    const { [name]: _, ...others } = value;
    onChange(next === undefined ? others : { ...value, [name]: next });
  };
  const control = (field: SchemaField) => {
    const Control = controls?.[field.name] ?? controlOf(field, value[field.name]);
    return (
      <Control
        key={field.name}
        field={field}
        value={value[field.name]}
        siblings={value}
        onChange={(next) => change(field.name, next)}
        onBroken={onBroken && ((isBroken, inside) => onBroken(pathOf(field, inside), isBroken))}
        {...errorsOf(field, value[field.name], errors)}
        tag={
          tag?.(field) ??
          (field.required ? null : <span className={styles.optional}>optional</span>)
        }
      />
    );
  };
  const fields = schemaFields(schema).filter((field) => !hidden?.has(field.name));
  const [seen, folded] = foldedFields(fields, usual);
  const set = folded.filter(({ name }) => value[name] !== undefined && value[name] !== null);
  return (
    <div className={styles.form}>
      {seen.map(control)}
      {folded.length > 0 && (
        <More count={set.length} hasError={folded.some((field) => hasErrors(field, errors))}>
          {folded.map(control)}
        </More>
      )}
    </div>
  );
}

/** Returns the fields that are seen and those that are folded; one alone is not worth a fold. */
function foldedFields(
  fields: SchemaField[],
  usual: readonly string[] | undefined,
): [SchemaField[], SchemaField[]] {
  if (!usual) return [fields, []];
  const named = usual.flatMap((name) => fields.find((each) => each.name === name) ?? []);
  const seen = new Set([...fields.filter((field) => field.required), ...named]);
  const folded = fields.filter((field) => !seen.has(field));
  return folded.length > 1 ? [[...seen], folded] : [[...seen, ...folded], []];
}

function hasErrors({ name }: SchemaField, errors: Errors = {}): boolean {
  return Object.keys(errors).some((path) => path === name || path.startsWith(`${name}/`));
}

type MoreProps = { count: number; hasError: boolean; children: ReactNode };

/** Fields that are seldom used; open from the beginning where one of them is set. */
function More({ count, hasError, children }: MoreProps) {
  const [isOpen, setOpen] = useState(count > 0);
  return (
    <details
      className={styles.more}
      open={isOpen || hasError}
      onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
    >
      <summary>
        More settings {count > 0 && <span className={styles.optional}>{count} set</span>}
      </summary>
      <div className={styles.form}>{children}</div>
    </details>
  );
}

/** Returns the control of a field; what its own control cannot show is edited as JSON. */
function controlOf(field: SchemaField, value: unknown): Control {
  const isEmpty = value === undefined || value === null;
  const isStrange =
    (field.kind === "object" && !isObject(value)) ||
    (field.kind === "list" && !Array.isArray(value)) ||
    (field.kind === "map" && !isObject(value)) ||
    (field.kind === "date" && !/^\d{4}-\d\d-\d\d$/.test(asText(value)));
  if (isEmpty || !isStrange) return CONTROLS[field.kind];
  if (field.kind === "date") return CONTROLS.text;
  return CONTROLS[typeof value === "string" && field.isTemplate ? "any" : "json"];
}

function pathOf({ name }: SchemaField, inside: string | undefined): string {
  return inside === undefined ? name : `${name}/${inside}`;
}

/** Returns what is wrong with a field, and inside it where that has controls of its own. */
function errorsOf(field: SchemaField, value: unknown, errors: Errors = {}) {
  const start = `${field.name}/`;
  const inside = Object.entries(errors).filter(([path]) => path.startsWith(start));
  const control = controlOf(field, value);
  const isShownInside =
    control === ObjectControl || control === ListControl || control === MapControl;
  return {
    error: errors[field.name] ?? (isShownInside ? undefined : inside[0]?.[1]),
    errors: Object.fromEntries(inside.map(([path, text]) => [path.slice(start.length), text])),
  };
}

const CONTROLS: Record<SchemaField["kind"], Control> = {
  ...VALUE_CONTROLS,
  object: ObjectControl,
  list: ListControl,
  map: MapControl,
};

/** The fields of an object inside; one that may be left out is there once it is added. */
function ObjectControl(props: FieldProps) {
  const { field, value, onChange, onBroken, error, errors, tag, controls } = props;
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
          controls={controls}
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
export function ListControl(props: FieldProps) {
  const { field, value, onChange, onBroken, error, errors, tag, controls } = props;
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
              {...(controls && { controls })}
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

type Entry = readonly [name: string, value: unknown];

/** The values of an object whose fields have any names, one below the other. */
function MapControl({ field, value, onChange, onBroken, error, errors, tag }: FieldProps) {
  const [entries, setEntries] = useState<readonly Entry[]>(() => entriesOf(value));
  // Names that are empty or stand twice are no value yet: they are here alone.
  useEffect(() => {
    setEntries((now) =>
      writeJson(objectOf(now)) === writeJson(value ?? {}) ? now : entriesOf(value),
    );
  }, [value]);
  const change = (next: readonly Entry[]) => {
    setEntries(next);
    onChange(next.length > 0 || field.required ? objectOf(next) : undefined);
  };
  const names = entries.map(([name]) => name);
  return (
    <fieldset className={styles.group}>
      <legend>
        {field.label} {tag}
      </legend>
      {error && <Note kind="error">{error}</Note>}
      {entries.map(([name, each], index) => {
        const one = entryField(field, name, index);
        const Control = controlOf(one, each);
        const isTwice = name !== "" && names.indexOf(name) !== index;
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: names change while they are typed
          <div key={index} className={styles.entry}>
            <TextField
              label={`Name ${index + 1}`}
              value={name}
              error={isTwice ? "This name stands twice." : undefined}
              onChange={(event) => change(entries.with(index, [event.target.value, each]))}
            />
            <Control
              field={one}
              value={each}
              onChange={(next) => change(entries.with(index, [name, next ?? ""]))}
              onBroken={onBroken && ((isBroken, inside) => onBroken(isBroken, pathOf(one, inside)))}
              {...errorsOf({ ...one, name }, each, errors)}
              tag={null}
            />
            <IconButton
              small
              icon="close"
              label={`Remove ${name || `entry ${index + 1}`}`}
              onClick={() => change(entries.toSpliced(index, 1))}
            />
          </div>
        );
      })}
      <Button small icon="add" onClick={() => setEntries([...entries, ["", ""]])}>
        Add to {field.label.toLowerCase()}
      </Button>
    </fieldset>
  );
}

function entriesOf(value: unknown): readonly Entry[] {
  return isObject(value) ? Object.entries(value) : [];
}

function objectOf(entries: readonly Entry[]): FormValue {
  return Object.fromEntries(entries.filter(([name]) => name !== ""));
}

/** Returns what stands in a list before something is entered. */
function emptyItem({ kind, choices }: SchemaField): unknown {
  if (kind === "object") return {};
  if (kind === "choice") return choices[0];
  if (kind === "boolean") return false;
  return kind === "text" || kind === "longText" ? "" : null;
}

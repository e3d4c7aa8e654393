import { type ComponentProps, type ReactNode, useId } from "react";
import { classes } from "@/ui/classes";
import styles from "@/ui/Field.module.css";
import { Icon } from "@/ui/icons";

interface FieldLook {
  label: string;
  /** Said below the control. */
  hint?: ReactNode;
  /** What is wrong with the value, and the way out; replaces the hint. */
  error?: string | undefined;
  /** Beside the label: "required", "was 220". */
  tag?: ReactNode;
  /** The label is for screen readers only; the surroundings say it to the eye. */
  hiddenLabel?: boolean;
}

interface ControlProps {
  id: string;
  "aria-describedby": string | undefined;
  "aria-invalid": true | undefined;
}

/** A label above a control, and a hint or an error below it. */
export function Field(props: FieldLook & { children: (control: ControlProps) => ReactNode }) {
  const { label, hint, error, tag, hiddenLabel, children } = props;
  const id = useId();
  const noteId = error || hint ? `${id}-note` : undefined;
  return (
    <div className={styles.field}>
      <div className={hiddenLabel ? "visually-hidden" : styles.top}>
        <label htmlFor={id}>{label}</label>
        {tag}
      </div>
      {children({ id, "aria-describedby": noteId, "aria-invalid": error ? true : undefined })}
      {error ? (
        <p id={noteId} className={styles.error}>
          <Icon name="error" small />
          {error}
        </p>
      ) : (
        hint && (
          <p id={noteId} className={styles.hint}>
            {hint}
          </p>
        )
      )}
    </div>
  );
}

function split<Props extends FieldLook>(props: Props) {
  const { label, hint, error, tag, hiddenLabel, ...control } = props;
  const field = { label, hint, error, tag, ...(hiddenLabel && { hiddenLabel }) };
  return { field, control };
}

/** One line of text or a number. */
export function TextField(props: FieldLook & Omit<ComponentProps<"input">, "id">) {
  const { field, control } = split(props);
  return (
    <Field {...field}>
      {(ids) => (
        <input {...control} {...ids} className={classes(styles.input, control.className)} />
      )}
    </Field>
  );
}

/** Text of several lines. */
export function TextArea(props: FieldLook & Omit<ComponentProps<"textarea">, "id">) {
  const { field, control } = split(props);
  return (
    <Field {...field}>
      {(ids) => (
        <textarea
          rows={3}
          {...control}
          {...ids}
          className={classes(styles.input, styles.area, control.className)}
        />
      )}
    </Field>
  );
}

/** A choice of one; its children are `option` elements. */
export function SelectField(props: FieldLook & Omit<ComponentProps<"select">, "id">) {
  const { field, control } = split(props);
  return (
    <Field {...field}>
      {(ids) => (
        <span className={styles.select}>
          <select {...control} {...ids} className={classes(styles.input, control.className)} />
          <Icon name="down" small />
        </span>
      )}
    </Field>
  );
}

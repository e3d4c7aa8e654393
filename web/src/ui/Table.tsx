import type { ReactNode } from "react";
import { classes } from "@/ui/classes";
import styles from "@/ui/Table.module.css";

interface Column {
  label: string;
  /** A CSS width; the column without one takes the rest. */
  width?: string;
  /** A column of numbers, aligned right. */
  numeric?: boolean;
  /** The label is for screen readers only. */
  hiddenLabel?: boolean;
}

/** A table with rows of one height; its children are `Row`s. */
export function Table(props: { label: string; columns: readonly Column[]; children: ReactNode }) {
  return (
    <table className={styles.table} aria-label={props.label}>
      <colgroup>
        {props.columns.map(({ label, width }) => (
          <col key={label} style={width ? { width } : undefined} />
        ))}
      </colgroup>
      <thead>
        <tr>
          {props.columns.map(({ label, numeric, hiddenLabel }) => (
            <th key={label} scope="col" className={classes(numeric && styles.numeric)}>
              <span className={hiddenLabel ? "visually-hidden" : undefined}>{label}</span>
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{props.children}</tbody>
    </table>
  );
}

/** A row of a table; its children are `td` elements, `numericCell` aligns numbers. */
export function Row({ chosen = false, children }: { chosen?: boolean; children: ReactNode }) {
  return <tr className={classes(styles.row, chosen && styles.chosen)}>{children}</tr>;
}

export const numericCell = styles.numeric;

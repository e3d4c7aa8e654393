import type { ReactNode, Ref } from "react";
import { classes } from "@/ui/classes";
import { Icon } from "@/ui/icons";
import styles from "@/ui/Table.module.css";

interface Column {
  label: string;
  /** A CSS width; the column without one takes the rest. */
  width?: string;
  /** A column of numbers, aligned right. */
  numeric?: boolean;
  /** The label is for screen readers only. */
  hiddenLabel?: boolean;
  /** How the rows are sorted by this column; null where they are not, undefined where they cannot be. */
  sorted?: "ascending" | "descending" | null;
  onSort?: () => void;
}

interface TableProps {
  label: string;
  columns: readonly Column[];
  /** Where not all rows are drawn, how many there are; each says its index then. */
  rowCount?: number;
  bodyRef?: Ref<HTMLTableSectionElement>;
  children: ReactNode;
}

/** A table with rows of one height; its children are `Row`s. */
export function Table({ rowCount, bodyRef, ...props }: TableProps) {
  const isPart = rowCount !== undefined;
  return (
    <table
      className={styles.table}
      aria-label={props.label}
      aria-rowcount={isPart ? rowCount + 1 : undefined}
    >
      <colgroup>
        {props.columns.map(({ label, width }) => (
          <col key={label} style={width ? { width } : undefined} />
        ))}
      </colgroup>
      <thead>
        <tr aria-rowindex={isPart ? 1 : undefined}>
          {props.columns.map(({ label, numeric, hiddenLabel, sorted, onSort }) => (
            <th
              key={label}
              scope="col"
              className={classes(numeric && styles.numeric)}
              aria-sort={sorted ?? undefined}
            >
              {onSort ? (
                <button type="button" className={styles.sort} onClick={onSort}>
                  {label}
                  {sorted && <Icon name={sorted === "ascending" ? "up" : "down"} small />}
                </button>
              ) : (
                <span className={hiddenLabel ? "visually-hidden" : undefined}>{label}</span>
              )}
            </th>
          ))}
        </tr>
      </thead>
      <tbody ref={bodyRef}>{props.children}</tbody>
    </table>
  );
}

interface RowProps {
  chosen?: boolean;
  /** From 0, in a table of which not all rows are drawn. */
  index?: number;
  children: ReactNode;
}

/** A row of a table; its children are `td` elements, `numericCell` aligns numbers. */
export function Row({ chosen = false, index, children }: RowProps) {
  return (
    <tr
      className={classes(styles.row, chosen && styles.chosen)}
      aria-rowindex={index === undefined ? undefined : index + 2}
      data-row={index}
    >
      {children}
    </tr>
  );
}

/** The place of rows that are not drawn. */
export function RowGap({ height }: { height: number }) {
  // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a row takes no focus
  return height > 0 && <tr aria-hidden="true" style={{ height }} />;
}

export const numericCell = styles.numeric;

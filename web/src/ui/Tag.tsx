import type { ComponentProps, ReactNode } from "react";
import { classes } from "@/ui/classes";
import styles from "@/ui/Tag.module.css";

/** A word in a box: a type, "was 220", "added". */
export function Tag(props: { kind?: "plain" | "add" | "change" | "remove"; children: ReactNode }) {
  const { kind = "plain", children } = props;
  return <span className={classes(styles.tag, styles[kind])}>{children}</span>;
}

/** Tags beside a name, which comes first: those that there is room for. */
export function Tags({ className, ...rest }: ComponentProps<"span">) {
  return <span {...rest} className={classes(styles.tags, className)} />;
}

import type { ReactNode } from "react";
import { classes } from "@/ui/classes";
import { Icon } from "@/ui/icons";
import styles from "@/ui/Note.module.css";

interface NoteProps {
  kind?: "plain" | "warning" | "error";
  /** The sentence, and the way out as a link or button. */
  children: ReactNode;
  /** Announced at once by screen readers, as the response to an action. */
  alert?: boolean;
}

const ICONS = { plain: "info", warning: "warning", error: "error" } as const;

/** A sentence that stays on the page. */
export function Note({ kind = "plain", children, alert = false }: NoteProps) {
  return (
    <div className={classes(styles.note, styles[kind])} role={alert ? "alert" : undefined}>
      <Icon name={ICONS[kind]} />
      <div className={styles.words}>{children}</div>
    </div>
  );
}

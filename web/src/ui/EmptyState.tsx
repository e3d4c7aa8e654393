import type { ReactNode } from "react";
import styles from "@/ui/EmptyState.module.css";

interface EmptyStateProps {
  /** An icon or a glyph above the title. */
  sign?: ReactNode;
  title: string;
  /** One sentence: the content that belongs here, and how to create it. */
  children: ReactNode;
  action?: ReactNode;
}

/** What a list says that has nothing to show. */
export function EmptyState({ sign, title, children, action }: EmptyStateProps) {
  return (
    <div className={styles.empty}>
      {sign}
      <h2 className={styles.title}>{title}</h2>
      <p className={styles.words}>{children}</p>
      {action}
    </div>
  );
}

import styles from "@/ui/Skeleton.module.css";

/** A placeholder while content loads; `label` names the content for screen readers. */
export function Skeleton({ lines = 2, label }: { lines?: number; label: string }) {
  return (
    <div className={styles.skeleton} role="status">
      <span className="visually-hidden">{label}</span>
      {Array.from({ length: lines }, (_, line) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines are all alike
        <span key={line} className={styles.line} />
      ))}
    </div>
  );
}

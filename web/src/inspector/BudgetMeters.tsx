import { type BudgetLine, warningWords } from "@/stream/budget";
import { LIMIT_NAMES, usedWords } from "@/ui/format";
import styles from "./BudgetMeters.module.css";

/** What is used of each amount of the budget, as a bar with its words. */
export function BudgetMeters({ lines }: { lines: readonly BudgetLine[] }) {
  if (lines.length === 0) return null;
  return (
    <section className={styles.budget} aria-label="Budget">
      <h3>Budget</h3>
      {lines.map((line) => {
        const { name, used, most, isWarned } = line;
        const label = LIMIT_NAMES[name] ?? name;
        return (
          <div key={name} className={styles.line} data-warned={isWarned}>
            <span>{label}</span>
            <span>
              {usedWords(name, used, most)}
              {warningWords(line)}
            </span>
            <span className={styles.bar} aria-hidden="true">
              <i style={{ width: `${Math.min(100, (100 * used) / most)}%` }} />
            </span>
          </div>
        );
      })}
    </section>
  );
}

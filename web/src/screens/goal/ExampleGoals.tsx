import { WaveGlyph } from "@/canvas/WaveGlyph";
import styles from "@/screens/goal/ExampleGoals.module.css";
import { EXAMPLE_GOALS } from "@/screens/goal/examples";

function shape(waves: readonly number[]): string[][] {
  return waves.map((count) => Array.from({ length: count }, () => "example"));
}

/** Six goals to try; choosing one writes it into the prompt. */
export function ExampleGoals({ onChoose }: { onChoose: (goal: string) => void }) {
  return (
    <section aria-labelledby="examples">
      <h2 id="examples" className={styles.title}>
        Try one of these
      </h2>
      <ul className={styles.list}>
        {EXAMPLE_GOALS.map(({ kind, goal, waves }) => (
          <li key={kind}>
            <button type="button" className={styles.example} onClick={() => onChoose(goal)}>
              <span className={styles.kind}>
                {kind}
                <WaveGlyph waves={shape(waves)} />
              </span>
              <span className={styles.goal}>{goal}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

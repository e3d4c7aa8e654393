import styles from "./WaveGlyph.module.css";

/** The number of cells of a wave; a wave with more steps is one tall cell, split by share. */
const MOST_CELLS = 6;

/** A run at a glance: one column per wave, one cell per step. Words must stand beside it. */
export function WaveGlyph({
  waves,
  size = "row",
}: {
  /** The statuses of the steps of each wave. */
  waves: readonly (readonly string[])[];
  size?: "row" | "header";
}) {
  return (
    <span className={`${styles.glyph} ${styles[size]}`} aria-hidden="true">
      {waves.map((statuses, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: waves are identified by their number
        <span className={styles.wave} key={index}>
          {statuses.length > MOST_CELLS ? (
            <Shares statuses={statuses} />
          ) : (
            <Cells statuses={statuses} />
          )}
        </span>
      ))}
    </span>
  );
}

function Cells({ statuses }: { statuses: readonly string[] }) {
  return statuses.map((status, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: cells are identified by their position
    <span className={styles.cell} data-status={status} key={index} />
  ));
}

function Shares({ statuses }: { statuses: readonly string[] }) {
  const counts = new Map<string, number>();
  for (const status of statuses) counts.set(status, (counts.get(status) ?? 0) + 1);
  return (
    <span className={styles.tall}>
      {[...counts].map(([status, count]) => (
        <span
          className={styles.cell}
          data-status={status}
          style={{ flexGrow: count }}
          key={status}
        />
      ))}
    </span>
  );
}

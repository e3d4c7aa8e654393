import type { ReactNode } from "react";
import { useDocument } from "@/api/queries";
import type { DocumentResponse } from "@/api/types";
import styles from "@/screens/compare/CompareHeader.module.css";
import { relationOf } from "@/screens/compare/comparison";
import { SIDES, type Side, SideMark } from "@/screens/compare/SideMark";
import type { Ticks } from "@/screens/compare/ticks";
import { formatInstant, formatMoment } from "@/ui/format";

interface CompareHeaderProps {
  ticks: Ticks;
  title: ReactNode;
  /** The buttons at the end. */
  children: ReactNode;
}

/** The two compared runs, and the actions on the comparison. */
export function CompareHeader({ ticks: [a = "", b = ""], title, children }: CompareHeaderProps) {
  const runs = [useDocument(a).data, useDocument(b).data] as const;
  const moments = momentsOf(runs.map((run) => run && new Date(run.started_at ?? run.timestamp)));
  return (
    <header className={styles.header}>
      {title}
      {SIDES.map((side, index) => (
        <SideName key={side} side={side} run={runs[index]} moment={moments[index] ?? ""} />
      ))}
      <span className={styles.relation}>
        {runs[0] && runs[1] && relationOf([runs[0], runs[1]])}
      </span>
      <span className={styles.actions}>{children}</span>
    </header>
  );
}

/** Returns when the runs started: as lists say it, more exactly where that is the same. */
function momentsOf(times: readonly (Date | undefined)[]): string[] {
  const words = times.map((time) => (time ? formatMoment(time) : ""));
  const isSame = new Set(words).size < words.length;
  return isSame ? times.map((time) => (time ? formatInstant(time) : "")) : words;
}

type SideNameProps = { side: Side; run: DocumentResponse | undefined; moment: string };

function SideName({ side, run, moment }: SideNameProps) {
  const models = new Set(run?.nodes.flatMap(({ model }) => model ?? []));
  return (
    <span className={styles.side}>
      <SideMark side={side} />
      {moment}
      <span className={styles.model}>{[...models].join(", ")}</span>
    </span>
  );
}

import { type KeyboardEvent, useRef, useState } from "react";
import { Button } from "@/ui/Button";
import { Count } from "@/ui/Count";
import styles from "./EntryList.module.css";
import type { Entry } from "./importReport";

type EntryListProps = {
  title: string;
  entries: readonly Entry[];
  /** Marks nodes in the preview of the graph. */
  onShow: (targets: readonly string[]) => void;
};

/** So many parts are listed at first. */
const FIRST = 50;
const MOVES: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 };

/** Parts of the source, each with what is said of it and its place. Tab enters the list once; the arrow
 * keys move in it. */
export function EntryList({ title, entries, onShow }: EntryListProps) {
  const [isWhole, setWhole] = useState(false);
  const [current, setCurrent] = useState(0);
  const list = useRef<HTMLUListElement>(null);
  if (entries.length === 0) return null;
  const move = (event: KeyboardEvent) => {
    const step = MOVES[event.key];
    const buttons = [...(list.current?.querySelectorAll<HTMLElement>("[data-entry]") ?? [])];
    const at = buttons.indexOf(document.activeElement as HTMLElement);
    if (step === undefined || at < 0) return;
    event.preventDefault();
    buttons[Math.min(Math.max(at + step, 0), buttons.length - 1)]?.focus();
  };
  const listed = isWhole ? entries : entries.slice(0, FIRST);
  const first = listed.findIndex((entry) => entry.targets.length > 0);
  return (
    <section className={styles.section} aria-label={title}>
      <h3>
        {title} <Count plain value={entries.length} />
      </h3>
      <ul ref={list} className={styles.list} onKeyDown={move}>
        {listed.map((entry, index) => (
          <Row
            // biome-ignore lint/suspicious/noArrayIndexKey: several parts may be lost at one place
            key={`${entry.pointer} ${index}`}
            entry={entry}
            isCurrent={index === (listed[current]?.targets.length ? current : first)}
            onFocus={() => setCurrent(index)}
            onShow={onShow}
          />
        ))}
      </ul>
      {listed.length < entries.length && (
        <Button small kind="quiet" onClick={() => setWhole(true)}>
          Show all {entries.length}
        </Button>
      )}
    </section>
  );
}

type RowProps = {
  entry: Entry;
  /** Tab leads to it. */
  isCurrent: boolean;
  onFocus: () => void;
  onShow: (targets: readonly string[]) => void;
};

function Row({ entry, isCurrent, onFocus, onShow }: RowProps) {
  const { name, kind, notes, text, targets } = entry;
  const words = name || "The whole file";
  return (
    <li className={styles.row} onMouseEnter={() => onShow(targets)} onMouseLeave={() => onShow([])}>
      <div className={styles.name}>
        {targets.length > 0 ? (
          <button
            type="button"
            data-entry
            tabIndex={isCurrent ? 0 : -1}
            onClick={() => onShow(targets)}
            onFocus={() => {
              onFocus();
              onShow(targets);
            }}
            onBlur={() => onShow([])}
          >
            {words}
          </button>
        ) : (
          <b>{words}</b>
        )}
        {kind && kind !== name && <span>{kind}</span>}
      </div>
      <ul className={styles.notes}>
        {notes.map((note) => (
          <li key={`${note.pointer} ${note.message}`}>
            {note.message}
            {note.hint && ` (${note.hint})`} {note.pointer && <code>{note.pointer}</code>}
          </li>
        ))}
      </ul>
      {text && <pre className={styles.text}>{text}</pre>}
    </li>
  );
}

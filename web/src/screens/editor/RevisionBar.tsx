import { useEffect, useRef } from "react";
import { errorText } from "@/api/errorText";
import { useRevisions } from "@/api/queries";
import type { ProposedDifference, RevisionSummary } from "@/api/types";
import { Button } from "@/ui/Button";
import { formatAmount, formatMoment } from "@/ui/format";
import { Icon } from "@/ui/icons";
import { Menu } from "@/ui/Menu";
import { principalWords } from "@/ui/principalWords";
import { Tag } from "@/ui/Tag";
import styles from "./RevisionBar.module.css";
import type { SaveState } from "./useAutosave";
import type { Comparison } from "./useComparison";

type RevisionBarProps = {
  planId: string;
  /** The revision that the service has. */
  revision: number;
  save: SaveState;
  comparison: Comparison;
  onRestore: (revision: number) => void;
};

/** Revisions shown in the bar; the list has all. */
const SHOWN = 4;
/** Revisions of one author that are this close together are made in one go. */
const SESSION_MS = 10 * 60_000;

const AUTHOR_WORDS = { person: "you", planner: "the planner", api: "a program" } as const;

/** The revisions of a plan, whether it is saved, and what changed since the one before. */
export function RevisionBar(props: RevisionBarProps) {
  const { planId, revision, save, comparison, onRestore } = props;
  const { since, choose, diff, isShown, show, opener } = comparison;
  const revisions = useRevisions(planId);
  const all = revisions.data?.revisions ?? [];
  const shown = revisionsInBar(all, [revision, since]);
  const course = useEndInView(all.length);
  return (
    <div className={styles.bar}>
      <div ref={course} className={styles.course}>
        {all.length > shown.length && (
          <EarlierRevisions
            revisions={all.filter((each) => !shown.includes(each))}
            onChoose={choose}
          />
        )}
        <ol aria-label="Revisions">
          {shown.toReversed().map((each, index) => (
            <Revision
              key={each.revision}
              revision={each}
              isFirst={index === 0}
              isCurrent={each.revision === revision}
              isBase={each.revision === since}
              onChoose={() => choose(each.revision)}
            />
          ))}
        </ol>
        <SaveNote save={save} />
      </div>
      {since > 0 && (
        <div className={styles.since}>
          <span>Since revision {since}</span>
          {diff && (
            <span className={styles.changes}>
              <DiffTags diff={diff} />
            </span>
          )}
          <Button
            ref={opener}
            small
            icon="compare"
            aria-pressed={isShown}
            onClick={() => show(!isShown)}
          >
            Compare
          </Button>
          <Button small kind="quiet" onClick={() => onRestore(since)}>
            Restore {since}
          </Button>
        </div>
      )}
    </div>
  );
}

/** Scrolls to the newest revision, and to whether it is saved, where there is no room for all. */
function useEndInView(count: number) {
  const course = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: it scrolls when there is a revision more
  useEffect(() => {
    const place = course.current;
    if (place === null) return;
    const scroll = () => void place.scrollTo({ left: place.scrollWidth });
    const observer = new ResizeObserver(scroll);
    scroll();
    observer.observe(place);
    return () => observer.disconnect();
  }, [count]);
  return course;
}

type EarlierProps = { revisions: readonly RevisionSummary[]; onChoose: (revision: number) => void };

/** Revisions before those in the bar, newest first. */
function EarlierRevisions({ revisions, onChoose }: EarlierProps) {
  return (
    <Menu
      align="start"
      trigger={
        <Button small kind="quiet" icon="history" aria-label="Earlier revisions">
          {formatAmount(revisions.length, "earlier", "earlier")}
        </Button>
      }
      items={revisions.map((each) => ({
        label: `Revision ${wordsOf(each)}`,
        onSelect: () => onChoose(each.revision),
      }))}
    />
  );
}

/** Returns the revisions that the bar has room for, newest first: of those made in one go the last, and what is compared. */
export function revisionsInBar(
  all: readonly RevisionSummary[],
  compared: readonly number[],
): RevisionSummary[] {
  const isLast = (each: RevisionSummary, next?: RevisionSummary) =>
    next === undefined ||
    authorOf(next) !== authorOf(each) ||
    Date.parse(next.created_at) - Date.parse(each.created_at) > SESSION_MS;
  const told = all.filter(
    (each, index) => compared.includes(each.revision) || isLast(each, all[index - 1]),
  );
  return (all.length > SHOWN ? told : [...all]).slice(0, SHOWN);
}

function authorOf({ author, created_by }: RevisionSummary): string {
  return created_by?.kind === "token" ? principalWords(created_by) : AUTHOR_WORDS[author];
}

/** "2, by the planner, 13:27". */
function wordsOf(each: RevisionSummary): string {
  return `${each.revision}, by ${authorOf(each)}, ${formatMoment(new Date(each.created_at))}`;
}

type RevisionProps = {
  revision: RevisionSummary;
  /** The first one says that it is a revision; so do the others to screen readers. */
  isFirst: boolean;
  isCurrent: boolean;
  isBase: boolean;
  onChoose: () => void;
};

function Revision({ revision, isFirst, isCurrent, isBase, onChoose }: RevisionProps) {
  const { note, error_count } = revision;
  const details = [note, error_count > 0 && formatAmount(error_count, "error")].filter(Boolean);
  return (
    <li>
      <button
        type="button"
        aria-current={isCurrent}
        aria-pressed={isBase}
        aria-label={`Revision ${wordsOf(revision)}`}
        title={details.join(", ") || undefined}
        onClick={onChoose}
      >
        {isFirst && "Revision "}
        {wordsOf(revision)}
      </button>
    </li>
  );
}

function SaveNote({ save }: { save: SaveState }) {
  if (save.kind === "saving") return <span role="status">Saving …</span>;
  if (save.kind === "saved") {
    return (
      <span className={styles.saved} role="status">
        <Icon name="tick" small />
        Saved
      </span>
    );
  }
  return (
    <span className={styles.unsaved} role="alert" title={errorText(save.error)}>
      <Icon name="error" small />
      Not saved: {save.error.message}
    </span>
  );
}

/** How many steps and edges are new, gone and changed. */
export function DiffTags({ diff }: { diff: ProposedDifference }) {
  const count = (list: { change: string }[], change: string) =>
    list.filter((each) => each.change === change).length;
  const parts = [
    ["add", count(diff.nodes, "added"), "step", "+"],
    ["remove", count(diff.nodes, "removed"), "step", "−"],
    ["add", count(diff.edges, "added"), "edge", "+"],
    ["remove", count(diff.edges, "removed"), "edge", "−"],
  ] as const;
  const changed =
    count(diff.nodes, "changed") + count(diff.edges, "changed") + Number(diff.title !== null);
  return (
    <>
      {parts.map(
        ([kind, number, word, sign]) =>
          number > 0 && (
            <Tag kind={kind} key={kind + word}>
              {sign}
              {formatAmount(number, word)}
            </Tag>
          ),
      )}
      {changed > 0 && <Tag kind="change">{changed} changed</Tag>}
    </>
  );
}

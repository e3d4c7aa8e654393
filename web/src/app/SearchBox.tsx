import { useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useRef, useState } from "react";
import { useNavigate } from "react-router";
import { inputsOf, titleOf } from "@/api/executionSummary";
import { call } from "@/api/http";
import styles from "@/app/SearchBox.module.css";
import { nameOf, planPath } from "@/screens/flows/planWords";
import { Icon } from "@/ui/icons";
import { KeyHint } from "@/ui/KeyHint";
import { Status } from "@/ui/Status";
import { TYPING_MS, useDebounced } from "@/ui/useDebounced";

export const SEARCH_FIELD_ID = "search";
const LIST_ID = "search-results";
const PAGE = 5;

interface Hit {
  to: string;
  title: string;
  /** Of a run, where its name does not tell it from others. */
  inputs?: string | undefined;
  status: Parameters<typeof Status>[0]["status"];
}

async function findHits(q: string, signal: AbortSignal): Promise<Hit[]> {
  const query = { q, limit: PAGE };
  const [{ executions: runs }, { plans }] = await Promise.all([
    call("listExecutions", { query: { ...query, digest: true }, signal }),
    call("listPlans", { query, signal }),
  ]);
  // Other plans without a name are found by their runs.
  const named = plans.filter(({ name, status }) => name !== null || status === "draft");
  return [
    ...runs.map((run) => ({
      to: `/runs/${run.execution_id}`,
      title: titleOf(run),
      inputs: inputsOf(run),
      status: run.outcome ?? run.status,
    })),
    ...named.map((plan) => ({ to: planPath(plan), title: nameOf(plan), status: plan.status })),
  ];
}

function useHits(text: string) {
  return useQuery({
    queryKey: ["search", text],
    queryFn: ({ signal }) => findHits(text, signal),
    enabled: text !== "",
  });
}

/** Finds runs, flows and plans by their name, title and goal; arrows choose, Enter opens. */
export function SearchBox() {
  const [text, setText] = useState("");
  const [index, setIndex] = useState(0);
  const [isOpen, setOpen] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const navigate = useNavigate();
  const settled = useDebounced(text.trim(), TYPING_MS);
  const found = useHits(settled);
  const hits = found.data ?? [];
  const isShown = isOpen && settled !== "";
  const open = (hit: Hit | undefined) => {
    if (!hit) return;
    setText("");
    setOpen(false);
    field.current?.blur();
    navigate(hit.to);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && hits.length > 0) setIndex((index + step + hits.length) % hits.length);
    else if (event.key === "Enter") open(hits[index]);
    else if (event.key === "Escape") {
      setText("");
      field.current?.blur();
    } else return;
    event.preventDefault();
  };
  return (
    <search className={styles.search}>
      <label className={styles.box}>
        <Icon name="search" small />
        <input
          ref={field}
          id={SEARCH_FIELD_ID}
          className={styles.input}
          type="text"
          role="combobox"
          aria-label="Search runs and plans"
          aria-expanded={isShown}
          aria-controls={LIST_ID}
          aria-autocomplete="list"
          aria-activedescendant={isShown && hits[index] ? `${LIST_ID}-${index}` : undefined}
          autoComplete="off"
          spellCheck={false}
          placeholder="Search runs and plans"
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setIndex(0);
            setOpen(true);
          }}
          onFocus={() => setOpen(true)}
          onBlur={() => setOpen(false)}
          onKeyDown={onKeyDown}
        />
        <KeyHint keys="/" />
      </label>
      {isShown && (
        <Hits hits={hits} isLoading={found.isPending} index={index} text={settled} onOpen={open} />
      )}
    </search>
  );
}

interface HitsProps {
  hits: readonly Hit[];
  isLoading: boolean;
  index: number;
  text: string;
  onOpen: (hit: Hit) => void;
}

function Hits({ hits, isLoading, index, text, onOpen }: HitsProps) {
  return (
    <div className={styles.results}>
      <div id={LIST_ID} role="listbox" aria-label="Found">
        {hits.map((hit, place) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the field
          <div
            key={hit.to}
            id={`${LIST_ID}-${place}`}
            role="option"
            tabIndex={-1}
            aria-selected={place === index}
            className={styles.hit}
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => onOpen(hit)}
          >
            <span className={styles.title}>
              {hit.title} {hit.inputs && <small>{hit.inputs}</small>}
            </span>
            <Status status={hit.status} />
          </div>
        ))}
      </div>
      {hits.length === 0 && (
        <p className={styles.none} role="status">
          {isLoading
            ? "Searching"
            : `Nothing has “${text}” in its name, title, goal, tags or result.`}
        </p>
      )}
    </div>
  );
}

import { useRef, useState } from "react";
import { useRevision, useRevisionDiff } from "@/api/queries";
import type { NodeDocument } from "@/api/types";

const NONE: readonly NodeDocument[] = [];

/** The revision that the plan is compared with: a chosen one, else the one that was opened. */
export function useComparison(planId: string, revision: number, first: number | null = null) {
  const [opened] = useState(revision);
  const [chosen, choose] = useState<number | null>(first);
  const usual = revision > opened ? opened : revision - 1;
  const since = chosen === null || chosen >= revision ? usual : chosen;
  const [isShown, show] = useState(false);
  const opener = useRef<HTMLButtonElement>(null);
  const close = () => {
    show(false);
    opener.current?.focus();
  };
  const diff = useRevisionDiff(planId, since, revision);
  const nodes = useRevision(planId, since).data?.nodes ?? NONE;
  return { since, choose, diff: diff.data, nodes, isShown, show, opener, close };
}

export type Comparison = ReturnType<typeof useComparison>;

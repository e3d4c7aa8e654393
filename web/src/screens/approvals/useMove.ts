import { type RefObject, useEffect, useRef } from "react";
import type { PendingRequest } from "@/api/types";
import { useShortcuts } from "@/ui/shortcuts";
import { keyOf } from "./requestWords";

type List = {
  list: readonly PendingRequest[];
  key: string | null;
  choose: (key: string | null) => void;
};

/** J and K choose the next and the previous request; the focus goes with the choice. */
export function useMove({ list, key, choose }: List, row: RefObject<HTMLElement | null>) {
  const isMoving = useRef(false);
  const move = (step: 1 | -1) => {
    const index = list.findIndex((request) => keyOf(request) === key);
    const next = list[Math.min(list.length - 1, Math.max(0, index + step))];
    if (!next) return;
    isMoving.current = true;
    choose(keyOf(next));
    row.current?.focus();
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: the row changes with the key
  useEffect(() => {
    if (isMoving.current) row.current?.focus();
    isMoving.current = false;
  }, [key, row]);
  useShortcuts("Approvals", [
    { keys: "j", does: "Next request", run: () => move(1) },
    { keys: "k", does: "Previous request", run: () => move(-1) },
  ]);
  return move;
}

import { useCallback, useState } from "react";

/** What the reader has folded (false) or unfolded (true), by path; all else is as each view likes. */
export type Folds = ReadonlyMap<string, boolean>;

export type Folding = {
  folds: Folds;
  onFold: (path: string, isOpen: boolean) => void;
};

/** The loops, sub-graphs and rounds that are folded, the same in canvas and timeline. */
export function useFolding(): Folding {
  const [folds, setFolds] = useState<Folds>(new Map());
  const onFold = useCallback(
    (path: string, isOpen: boolean) => setFolds((known) => new Map(known).set(path, isOpen)),
    [],
  );
  return { folds, onFold };
}

import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { errorText } from "@/api/errorText";
import { Note } from "@/ui/Note";
import { Skeleton } from "@/ui/Skeleton";

type LoadedProps<Data> = {
  query: UseQueryResult<Data>;
  /** What is being loaded, for screen readers. */
  label: string;
  children: (data: Data) => ReactNode;
};

/** Something that is loaded on demand: its place, its error, or itself. */
export function Loaded<Data>({ query, label, children }: LoadedProps<Data>) {
  if (query.data !== undefined) return children(query.data);
  if (query.error) return <Note kind="error">{errorText(query.error)}</Note>;
  return <Skeleton label={label} lines={4} />;
}

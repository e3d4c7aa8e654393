/** What the page asks of the frame that draws diagrams. */
export type DiagramRequest = {
  id: number;
  /** Mermaid. */
  code: string;
  isDark: boolean;
  fontFamily: string;
};

/** What the frame says: first that it is there, then of each request what became of it. */
export type DiagramAnswer = "ready" | { id: number; svg: string | null };

import { create } from "zustand";
import { persist } from "zustand/middleware";

interface Session {
  /** The service wants its token before it answers. */
  needsLogin: boolean;
  /** This browser has sent the token; the cookie that came of it cannot be read here. */
  isLoggedIn: boolean;
}

/** What this browser knows of its login. */
export const useSession = create<Session>()(
  persist<Session, [], [], Pick<Session, "isLoggedIn">>(
    () => ({ needsLogin: false, isLoggedIn: false }),
    { name: "planwave.session", partialize: ({ isLoggedIn }) => ({ isLoggedIn }) },
  ),
);

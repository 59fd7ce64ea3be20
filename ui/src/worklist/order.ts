/** The films as they were last listed, in order: what "next film" means on the reading screen. */
import { createStore, type Store } from "../parts/store";

export const listed: Store<string[]> = createStore<string[]>([]);

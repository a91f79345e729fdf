/** The JSON of an object that tends to come many times in a row: a policy, the error of a storm. */
export class LastText {
  #object: object | null = null;
  #text = '';

  of(object: object): string {
    if (object !== this.#object) {
      this.#text = JSON.stringify(object);
      this.#object = object;
    }
    return this.#text;
  }
}
